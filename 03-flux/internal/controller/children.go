package controller

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/03-flux/internal/broker"
)

// setupFieldOwner is the name under which the API server records the fields that this controller owns.
const setupFieldOwner = "fluxsetup-controller"

// Children are created, not applied: an apply would add to a foreign ConfigMap that has come into being since
// the cache said "absent", as no key of it is in conflict with ours. A create never touches what is there.

// ensureSecret makes the Secret with the certificate, if it is not there. It is called only before the Job is
// made: while there are brokers that use a certificate, there is no other. What is in it is nobody's business:
// it is in no log, no Event and no message.
func (r *FluxSetupReconciler) ensureSecret(ctx context.Context, setup *v1alpha1.FluxSetup) error {
	live := &corev1.Secret{}
	missing, err := r.findChild(ctx, r.APIReader, setup, live, "Secret")
	if err != nil || !missing {
		return err
	}
	certificate, err := broker.NewCertificate(r.Random)
	if err != nil {
		return fmt.Errorf("making the certificate of FluxSetup %s: %w", setup.Name, err)
	}
	// To read one's own writes, the client would have to watch Secrets.
	return r.createChild(ctx, desiredSecret(setup, certificate), "Secret", client.DisableReadYourWritesConsistency)
}

// ensureConfigMap makes the ConfigMap, if it is not there. It is immutable, so there is nothing to put right.
func (r *FluxSetupReconciler) ensureConfigMap(ctx context.Context, setup *v1alpha1.FluxSetup) error {
	missing, err := r.findChild(ctx, r.Client, setup, &corev1.ConfigMap{}, "ConfigMap")
	if err != nil || !missing {
		return err
	}
	return r.createChild(ctx, desiredConfigMap(setup), "ConfigMap")
}

// ensureService makes the Service, if it is not there, and puts right what is not as it should be. It writes
// only if something is not, so that nothing is written at rest. What other writers add is theirs.
func (r *FluxSetupReconciler) ensureService(ctx context.Context, setup *v1alpha1.FluxSetup) error {
	live, desired := &corev1.Service{}, desiredService(setup)
	missing, err := r.findChild(ctx, r.Client, setup, live, "Service")
	if err != nil {
		return err
	}
	wanted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
	if err != nil {
		return fmt.Errorf("reading the configuration of Service %s: %w", setup.Name, err)
	}
	if missing {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(wanted, live); err != nil {
			return fmt.Errorf("reading the configuration of Service %s: %w", setup.Name, err)
		}
		return r.createChild(ctx, live, "Service")
	}
	// The cache leaves out what objects of one kind have in common.
	live.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Service"))
	is, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return fmt.Errorf("reading Service %s: %w", setup.Name, err)
	}
	if covers(is, wanted) {
		return nil
	}
	// Forced: whoever changed a field that is ours loses it. The uid keeps the force from falling on another
	// object that has taken the name since.
	if err := r.Apply(ctx, desired.WithUID(live.UID), client.FieldOwner(setupFieldOwner), client.ForceOwnership); err != nil {
		return classify("applying Service "+setup.Name, err)
	}
	return nil
}

// findChild reads the child of one kind, and tells whether there is none. One that is not the FluxSetup's is a
// refusal.
func (r *FluxSetupReconciler) findChild(ctx context.Context, reader client.Reader, setup *v1alpha1.FluxSetup, live client.Object, kind string) (missing bool, err error) {
	err = reader.Get(ctx, client.ObjectKeyFromObject(setup), live)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("reading %s %s: %w", kind, setup.Name, err)
	case !metav1.IsControlledBy(live, setup):
		return false, nameConflict(kind, setup.Name)
	}
	return false, nil
}

// createChild creates a child. If there is one after all, the next pass will see whose it is.
func (r *FluxSetupReconciler) createChild(ctx context.Context, child client.Object, kind string, options ...client.CreateOption) error {
	if err := r.Create(ctx, child, append(options, client.FieldOwner(setupFieldOwner))...); err != nil {
		return classify(fmt.Sprintf("creating %s %s", kind, child.GetName()), err)
	}
	return nil
}

// covers tells whether all that is wanted is so. There may be more: other owners, other labels, defaults.
func covers(is, wanted any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		fields, ok := is.(map[string]any)
		for name, value := range wanted {
			ok = ok && covers(fields[name], value)
		}
		return ok
	case []any:
		elements, _ := is.([]any)
		for _, value := range wanted {
			found := false
			for _, element := range elements {
				found = found || covers(element, value)
			}
			if !found {
				return false
			}
		}
		return true
	default:
		return apiequality.Semantic.DeepEqual(is, wanted)
	}
}

// refusedError says that the API server will not have a child as it is desired, and that trying again changes
// nothing until the world does.
type refusedError struct {
	reason, message string
	// untold: no event tells when the world has changed.
	untold bool
}

func (e *refusedError) Error() string { return e.message }

func nameConflict(kind, name string) *refusedError {
	return &refusedError{
		reason:  v1alpha1.ReasonNameConflict,
		message: fmt.Sprintf("%s %s exists and does not belong to this FluxSetup: it is left as it is", kind, name),
		// Secrets are not watched.
		untold: kind == "Secret",
	}
}

// classify tells refusals from errors that may be gone with the next try.
func classify(doing string, err error) error {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		// The garbage collector is at work, and the FluxSetup itself goes next.
		return &refusedError{reason: v1alpha1.ReasonStarting, message: "the namespace is about to go"}
	}
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonInvalid, metav1.StatusReasonForbidden, metav1.StatusReasonBadRequest, metav1.StatusReasonInternalError:
		return &refusedError{reason: v1alpha1.ReasonApplyFailed, message: err.Error(), untold: true}
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// refusalOf returns the refusal among joined errors, the first if there are several, and everything that is not
// one.
func refusalOf(err error) (*refusedError, error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		joined = errorList{err}
	}
	var first *refusedError
	var others []error
	for _, one := range joined.Unwrap() {
		var refused *refusedError
		switch {
		case !errors.As(one, &refused):
			others = append(others, one)
		case first == nil:
			first = refused
		}
	}
	return first, errors.Join(others...)
}

type errorList []error

func (l errorList) Unwrap() []error { return l }
