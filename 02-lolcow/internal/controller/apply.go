package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// configuration is what all apply configurations of one kind have in common.
type configuration[C any] interface {
	runtime.ApplyConfiguration
	GetName() *string
	GetNamespace() *string
	WithUID(types.UID) C
}

// applyDependent brings one dependent in line with what is desired, and returns what it is now: nil if there is none
// that owner owns. It writes only if what this controller owns of the dependent differs, so that nothing is written in
// steady state. What other writers own stays theirs.
//
// live is an empty object of the dependent's kind; extract reads from such an object what one field owner owns of it.
func applyDependent[O client.Object, C configuration[C]](
	ctx context.Context, c client.Client, fieldOwner string, owner client.Object,
	live O, desired C, extract func(live O, fieldManager string) (C, error),
) (O, error) {
	var none O
	kind, err := c.GroupVersionKindFor(live)
	if err != nil {
		return none, fmt.Errorf("finding the kind of %T: %w", live, err)
	}
	key := client.ObjectKey{Namespace: ptr.Deref(desired.GetNamespace(), ""), Name: ptr.Deref(desired.GetName(), "")}
	dependent := fmt.Sprintf("%s %s", kind.Kind, key.Name)

	err = c.Get(ctx, key, live)
	if apierrors.IsNotFound(err) {
		// Not forced: if an object that is not ours has been created since, the API server responds with a conflict of
		// field managers, and nothing of it is adopted.
		err := c.Apply(ctx, desired, client.FieldOwner(fieldOwner))
		switch {
		case apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict):
			return none, nameConflict(dependent)
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			// The garbage collector is at work, and the owner itself is deleted next.
			return none, nil
		case err != nil:
			return none, classify("applying "+dependent, err)
		}
		return live, readResponse(desired, live)
	}
	if err != nil {
		return none, fmt.Errorf("reading %s: %w", dependent, err)
	}
	if !metav1.IsControlledBy(live, owner) {
		return none, nameConflict(dependent)
	}

	// What cannot be extracted is not as desired: another writer may have put an entry twice into a list with keys.
	owned, err := extract(live, fieldOwner)
	if err == nil && apiequality.Semantic.DeepEqual(owned, desired) {
		return live, nil
	}
	// Forced: a writer that changed a field of ours loses it. The uid keeps the force from falling on another object
	// that has got the name since.
	err = c.Apply(ctx, desired.WithUID(live.GetUID()), client.FieldOwner(fieldOwner), client.ForceOwnership)
	switch {
	case isOtherUID(err):
		return none, fmt.Errorf("applying %s: %w", dependent, errStale)
	case err != nil:
		return live, classify("applying "+dependent, err)
	}
	return live, readResponse(desired, live)
}

// isOtherUID tells whether an object was not changed because it has another uid than the one that was named.
func isOtherUID(err error) bool {
	cause, found := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return found && cause.Field == "metadata.uid"
}

// readResponse turns the API server's response to an apply, which is in the applied configuration, into the object that
// it describes: the newest state there is, without waiting for the cache.
func readResponse(response runtime.ApplyConfiguration, live client.Object) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(response)
	if err != nil {
		return fmt.Errorf("reading the response to an apply: %w", err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, live); err != nil {
		return fmt.Errorf("reading the response to an apply: %w", err)
	}
	return nil
}
