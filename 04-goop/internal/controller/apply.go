package controller

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// createDependent creates a dependent: an object that is there already is never changed by it. An object of that name is
// either not owned by owner, or the cache is older than what the API server has.
func createDependent(ctx context.Context, c client.Client, fieldOwner string, owner, desired client.Object) error {
	kind, err := apiutil.GVKForObject(desired, c.Scheme())
	if err != nil {
		return fmt.Errorf("finding the kind of %T: %w", desired, err)
	}
	dependent := fmt.Sprintf("%s %s", kind.Kind, desired.GetName())
	live := desired.DeepCopyObject().(client.Object)
	err = c.Get(ctx, client.ObjectKeyFromObject(desired), live)
	switch {
	case err == nil && (!metav1.IsControlledBy(live, owner) || !live.GetDeletionTimestamp().IsZero()):
		return nameConflict(dependent)
	case err == nil:
		// It lacks the labels by which it is found: a user has removed them.
		_, err := patchDependent(ctx, c, fieldOwner, live, map[string]any{"metadata": map[string]any{"labels": desired.GetLabels()}})
		return err
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("reading %s: %w", dependent, err)
	}
	if err := c.Create(ctx, desired, client.FieldOwner(fieldOwner)); err != nil {
		return classify("creating "+dependent, err)
	}
	return nil
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
