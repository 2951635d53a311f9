package controller

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// findDependent reports whether a dependent exists, and reads it into live. An object of its name that owner does not own
// is a name conflict.
func findDependent(ctx context.Context, c client.Client, reader client.Reader, owner, live client.Object, key client.ObjectKey) (bool, error) {
	dependent, err := describe(c, live, key.Name)
	if err != nil {
		return false, err
	}
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

// findFor is findDependent for a Goop. An object that is being deleted is a name conflict too, and that passes.
func findFor(ctx context.Context, c client.Client, goop *v1alpha1.Goop, live client.Object, name string) (bool, error) {
	found, err := findDependent(ctx, c, c, goop, live, client.ObjectKey{Namespace: goop.Namespace, Name: name})
	if live.GetDeletionTimestamp().IsZero() || (err != nil && !isRejected(err)) {
		return found, err
	}
	dependent, err := describe(c, live, name)
	if err != nil {
		return false, err
	}
	return false, &rejectedError{
		reason:  v1alpha1.ReasonNameConflict,
		message: dependent + " is being deleted: another one is created when it no longer exists",
	}
}

// createDependent creates a dependent. Its name is the idempotency key, so a creation never touches an object that exists.
func createDependent(ctx context.Context, c client.Client, fieldOwner string, desired client.Object, options ...client.CreateOption) error {
	dependent, err := describe(c, desired, desired.GetName())
	if err != nil {
		return err
	}
	action := "creating " + dependent
	err = c.Create(ctx, desired, append(options, client.FieldOwner(fieldOwner))...)
	switch {
	case apierrors.IsAlreadyExists(err) && !isDenied(err):
		// Created since it was looked for. The next reconciliation sees who owns it.
		return fmt.Errorf("%s: %w", action, errStale)
	case err != nil:
		return classify(action, err)
	}
	return nil
}

// patchDependent changes labels and some fields of the spec of a dependent, and returns what the API server has stored: an
// admission policy may have undone it. The uid keeps the patch from another object that has got the name since, and the
// resourceVersion keeps one that is late from undoing what was decided after it.
func patchDependent[O client.Object](ctx context.Context, c client.Client, fieldOwner string, live O, labels map[string]string, spec map[string]any) (O, error) {
	var none O
	dependent, err := describe(c, live, live.GetName())
	if err != nil {
		return none, err
	}
	stored := live.DeepCopyObject().(O)
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(), "labels": labels},
		"spec":     spec,
	})
	if err != nil {
		return stored, fmt.Errorf("writing the change of %s: %w", dependent, err)
	}
	if err := c.Patch(ctx, stored, client.RawPatch(types.MergePatchType, body), client.FieldOwner(fieldOwner)); err != nil {
		return stored, classify("changing "+dependent, err)
	}
	return stored, nil
}

// deleteDependent deletes exactly this dependent, and only as it was read: it may have got work since, or be another's. The
// garbage collector deletes its pods.
func deleteDependent(ctx context.Context, c client.Client, dependent client.Object) error {
	named, err := describe(c, dependent, dependent.GetName())
	if err != nil {
		return err
	}
	err = c.Delete(ctx, dependent, client.PropagationPolicy(metav1.DeletePropagationBackground),
		client.Preconditions{UID: new(dependent.GetUID()), ResourceVersion: new(dependent.GetResourceVersion())})
	if err == nil || isGone(err) {
		return nil
	}
	return classify("deleting "+named, err)
}

// describe is how messages name a dependent: by its kind and name.
func describe(c client.Client, dependent client.Object, name string) (string, error) {
	kind, err := c.GroupVersionKindFor(dependent)
	if err != nil {
		return "", fmt.Errorf("finding the kind of %T: %w", dependent, err)
	}
	return kind.Kind + " " + name, nil
}
