package controller

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ensureDependent creates a dependent if it does not exist. One that does is found by its labels, so if it was not found a
// user has removed them.
func ensureDependent(ctx context.Context, c client.Client, fieldOwner string, owner, live, desired client.Object) error {
	found, err := findDependent(ctx, c, c, owner, live, client.ObjectKeyFromObject(desired))
	switch {
	case err != nil:
		return err
	case found && !live.GetDeletionTimestamp().IsZero():
		return nameConflict(fmt.Sprintf("%T %s", live, live.GetName()))
	case found:
		_, err := patchDependent(ctx, c, fieldOwner, live, map[string]any{"metadata": map[string]any{"labels": desired.GetLabels()}})
		return err
	}
	created, err := createDependent(ctx, c, fieldOwner, desired)
	if err == nil && !created {
		return errNamespaceTerminating
	}
	return err
}

// findDependent tells whether a dependent exists, and reads it into live. An object of its name that owner does not own
// is a name conflict.
func findDependent(ctx context.Context, c client.Client, reader client.Reader, owner, live client.Object, key client.ObjectKey) (bool, error) {
	kind, err := c.GroupVersionKindFor(live)
	if err != nil {
		return false, fmt.Errorf("finding the kind of %T: %w", live, err)
	}
	dependent := fmt.Sprintf("%s %s", kind.Kind, key.Name)
	err = reader.Get(ctx, key, live)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading %s: %w", dependent, err)
	case !metav1.IsControlledBy(live, owner):
		return false, nameConflict(dependent)
	}
	return true, nil
}

// createDependent creates a dependent that is not changed afterwards: a Job, or what is immutable. Its name is the
// idempotency key, so a creation never touches an object that exists. Without an error, false means that the namespace
// is being deleted, and nothing was created.
func createDependent(ctx context.Context, c client.Client, fieldOwner string, desired client.Object, options ...client.CreateOption) (bool, error) {
	kind, err := c.GroupVersionKindFor(desired)
	if err != nil {
		return false, fmt.Errorf("finding the kind of %T: %w", desired, err)
	}
	action := fmt.Sprintf("creating %s %s", kind.Kind, desired.GetName())
	err = c.Create(ctx, desired, append(options, client.FieldOwner(fieldOwner))...)
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return false, nil
	case apierrors.IsAlreadyExists(err):
		// Created since it was looked for. The next reconciliation sees who owns it.
		return false, fmt.Errorf("%s: %w", action, errStale)
	case err != nil:
		return false, classify(action, err)
	}
	return true, nil
}

// patchDependent changes some fields of a dependent, and tells whether that changed anything: an admission policy may
// have undone it. The uid keeps the patch from another object that has got the name since, and the resourceVersion keeps
// one that is late from undoing what was decided after it.
func patchDependent(ctx context.Context, c client.Client, fieldOwner string, live client.Object, change map[string]any) (bool, error) {
	dependent := fmt.Sprintf("%T %s", live, live.GetName())
	metadata, _ := change["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		change["metadata"] = metadata
	}
	metadata["uid"], metadata["resourceVersion"] = live.GetUID(), live.GetResourceVersion()
	body, err := json.Marshal(change)
	if err != nil {
		return false, fmt.Errorf("writing the change of %s: %w", dependent, err)
	}
	target := live.DeepCopyObject().(client.Object)
	if err := c.Patch(ctx, target, client.RawPatch(types.MergePatchType, body), client.FieldOwner(fieldOwner)); err != nil {
		return false, classify("changing "+dependent, err)
	}
	return target.GetResourceVersion() != live.GetResourceVersion(), nil
}

// deleteDependent deletes exactly this dependent. The garbage collector deletes its pods.
func deleteDependent(ctx context.Context, c client.Client, dependent client.Object) error {
	err := c.Delete(ctx, dependent, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: new(dependent.GetUID())})
	if client.IgnoreNotFound(err) != nil {
		return classify(fmt.Sprintf("deleting %T %s", dependent, dependent.GetName()), err)
	}
	return nil
}
