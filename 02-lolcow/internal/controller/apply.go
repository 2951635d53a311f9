package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// fieldOwner is the name under which the API server records the fields that this controller owns.
const fieldOwner = "lolcow-controller"

// configuration is what all apply configurations of one kind have in common.
type configuration[C any] interface {
	runtime.ApplyConfiguration
	WithUID(types.UID) C
}

// applyChild brings one child in line with what is desired, and returns what the child is now: nil if
// there is none that is the Lolcow's. It writes only if what this controller owns of the child differs,
// so that nothing is written at rest. What other writers own is theirs.
//
// live is an empty object of the child's kind; extract reads from such an object what one field owner
// owns of it.
func applyChild[O client.Object, C configuration[C]](
	ctx context.Context, r *LolcowReconciler, lolcow *v1alpha1.Lolcow,
	live O, desired C, extract func(live O, fieldManager string) (C, error),
) (O, error) {
	var none O
	kind, err := r.GroupVersionKindFor(live)
	if err != nil {
		return none, fmt.Errorf("finding the kind of %T: %w", live, err)
	}
	child := fmt.Sprintf("%s %s", kind.Kind, lolcow.Name)

	err = r.Get(ctx, client.ObjectKeyFromObject(lolcow), live)
	if apierrors.IsNotFound(err) {
		// Not forced: if a foreign object has come into being since, the API server answers with a
		// conflict, and nothing of it is seized.
		err := r.Apply(ctx, desired, client.FieldOwner(fieldOwner))
		switch {
		case apierrors.IsConflict(err):
			return none, nameConflict(child)
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			// The garbage collector is at work, and the Lolcow itself goes next.
			return none, nil
		case err != nil:
			return none, classify(child, err)
		}
		return live, readAnswer(desired, live)
	}
	if err != nil {
		return none, fmt.Errorf("reading %s: %w", child, err)
	}
	if !metav1.IsControlledBy(live, lolcow) {
		return none, nameConflict(child)
	}

	owned, err := extract(live, fieldOwner)
	if err != nil {
		return none, fmt.Errorf("reading the owned fields of %s: %w", child, err)
	}
	if apiequality.Semantic.DeepEqual(owned, desired) {
		return live, nil
	}
	// Forced: whoever changed a field that is ours loses it. The uid keeps the force from falling on
	// another object that has taken the name since.
	if err := r.Apply(ctx, desired.WithUID(live.GetUID()), client.FieldOwner(fieldOwner), client.ForceOwnership); err != nil {
		return live, classify(child, err)
	}
	return live, readAnswer(desired, live)
}

// readAnswer turns the API server's answer to an apply, which is in the applied configuration, into the
// object that it describes: the newest there is, with no need to wait for the cache.
func readAnswer(answer runtime.ApplyConfiguration, live client.Object) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(answer)
	if err != nil {
		return fmt.Errorf("reading the answer to an apply: %w", err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, live); err != nil {
		return fmt.Errorf("reading the answer to an apply: %w", err)
	}
	return nil
}

// refusedError says that the API server will not have a child as it is desired, and that trying again
// changes nothing until the spec or the world does.
type refusedError struct {
	reason, message string
}

func (e *refusedError) Error() string { return e.message }

func nameConflict(child string) *refusedError {
	return &refusedError{
		reason:  v1alpha1.ReasonNameConflict,
		message: child + " exists and does not belong to this Lolcow: it is left as it is",
	}
}

// classify tells refusals from errors that may be gone with the next try.
func classify(child string, err error) error {
	if isPortTaken(err) {
		return &refusedError{reason: v1alpha1.ReasonPortConflict, message: err.Error()}
	}
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonInvalid, metav1.StatusReasonForbidden, metav1.StatusReasonBadRequest:
		return &refusedError{reason: v1alpha1.ReasonApplyFailed, message: err.Error()}
	}
	return fmt.Errorf("applying %s: %w", child, err)
}

// isPortTaken tells whether the API server says that another Service holds the node port. It has no
// reason of its own for that: the field and the text are from the port allocator
// (k8s.io/kubernetes/pkg/registry/core/service/portallocator/allocator.go, ErrAllocated).
func isPortTaken(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		if strings.HasSuffix(cause.Field, ".nodePort") && strings.Contains(cause.Message, "already allocated") {
			return true
		}
	}
	return false
}

// splitRefusals takes joined errors apart: the first refusal, and everything that is not one.
func splitRefusals(err error) (*refusedError, error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil, err
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
