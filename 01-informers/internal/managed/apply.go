package managed

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
)

// find returns the Deployment of the name in the spec: nil if there is none, and the refusal NameConflict
// if it is not the Foo's.
func (r *FooReconciler) find(ctx context.Context, f *v1alpha1.Foo) (*appsv1.Deployment, error) {
	live := &appsv1.Deployment{}
	err := r.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: f.Spec.DeploymentName}, live)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading Deployment %s: %w: %w", f.Spec.DeploymentName, foo.ErrStale, err)
	case !metav1.IsControlledBy(live, f):
		return nil, foo.NameConflict(live.Name)
	}
	return live, nil
}

// apply brings the Foo's Deployment in line with the spec and returns what it is now. live is what the cache
// has of it. It writes only if what this controller owns of it differs, so that nothing is written in steady
// state. What other writers own is theirs.
func (r *FooReconciler) apply(ctx context.Context, f *v1alpha1.Foo, live *appsv1.Deployment) (*appsv1.Deployment, error) {
	desired := foo.Deployment(f, r.image)
	doing := "applying Deployment " + f.Spec.DeploymentName
	if live == nil {
		// Not forced: if an object that is not ours has been created since, the API server responds with a
		// conflict, and nothing of it is adopted.
		err := r.Apply(ctx, desired, client.FieldOwner(foo.FieldOwner))
		if foo.IsOwnedByOthers(err) {
			return nil, foo.NameConflict(f.Spec.DeploymentName)
		}
		if err != nil {
			return nil, foo.Classify(doing, err)
		}
		return readAnswer(desired)
	}

	if foo.InSync(live, desired) {
		return live, nil
	}
	// Forced: a writer that changed a field of ours loses it. The uid keeps the force from falling on
	// another object that has got the name since.
	if err := r.Apply(ctx, desired.WithUID(live.UID), client.FieldOwner(foo.FieldOwner), client.ForceOwnership); err != nil {
		return live, foo.Classify(doing, err)
	}
	return readAnswer(desired)
}

// deleteOthers deletes the Deployments that this Foo made under other names.
func (r *FooReconciler) deleteOthers(ctx context.Context, f *v1alpha1.Foo) error {
	var owned appsv1.DeploymentList
	if err := r.List(ctx, &owned, client.InNamespace(f.Namespace), client.MatchingFields{ownerIndex: string(f.UID)}); err != nil {
		return fmt.Errorf("listing the Deployments of Foo %s: %w: %w", f.Name, foo.ErrStale, err)
	}
	var errs []error
	for i := range owned.Items {
		other := &owned.Items[i]
		if other.Name == f.Spec.DeploymentName || !other.DeletionTimestamp.IsZero() {
			continue
		}
		// The uid: what has taken the name since is not ours to delete.
		err := r.Delete(ctx, other, client.Preconditions{UID: &other.UID},
			client.PropagationPolicy(metav1.DeletePropagationBackground))
		errs = append(errs, foo.Classify("deleting Deployment "+other.Name, client.IgnoreNotFound(err)))
	}
	return errors.Join(errs...)
}

// readAnswer turns the API server's answer to an apply, which is in the applied configuration, into the
// object that it describes: the newest there is, with no need to wait for the cache.
func readAnswer(answer runtime.ApplyConfiguration) (*appsv1.Deployment, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(answer)
	if err != nil {
		return nil, fmt.Errorf("reading the answer to an apply: %w", err)
	}
	live := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, live); err != nil {
		return nil, fmt.Errorf("reading the answer to an apply: %w", err)
	}
	return live, nil
}
