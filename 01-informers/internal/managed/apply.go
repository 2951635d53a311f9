package managed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
)

// findDeployment returns the Deployment of the name in the spec: nil if there is none, and the error NameConflict if the Foo
// does not own it.
func (r *FooReconciler) findDeployment(ctx context.Context, f *v1alpha1.Foo) (*appsv1.Deployment, error) {
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

// apply brings the Foo's Deployment in line with the spec and returns it as it is then. live is the Deployment in the
// cache. apply writes only if a field that this controller owns differs, so that nothing is written in steady state. Fields
// that other writers own are left to them.
func (r *FooReconciler) apply(ctx context.Context, f *v1alpha1.Foo, live *appsv1.Deployment) (*appsv1.Deployment, error) {
	desired := foo.Deployment(f, r.image)
	action := "applying Deployment " + f.Spec.DeploymentName
	if live == nil {
		// Not forced, and only if there is no such object: one that was created since is not adopted.
		err := r.Apply(ctx, &appliedDeployment{desired.WithResourceVersion(foo.CreateOnlyResourceVersion)}, client.FieldOwner(foo.FieldOwner))
		if apierrors.IsConflict(err) && r.isOwnedByOthers(ctx, f, err) {
			return nil, foo.NameConflict(f.Spec.DeploymentName)
		}
		if err != nil {
			return nil, foo.Classify(action, err)
		}
		return r.decodeStored(f, desired)
	}

	if foo.InSync(live, desired) {
		return live, nil
	}
	// Forced: another writer that changed a field of ours loses the ownership of it. With the resourceVersion, a Deployment
	// that changed since it was read is not overwritten: it may no longer be the Foo's. With the uid, a Deployment that was
	// deleted since is not created again.
	desired = desired.WithUID(live.UID).WithResourceVersion(live.ResourceVersion)
	if err := r.Apply(ctx, &appliedDeployment{desired}, client.FieldOwner(foo.FieldOwner), client.ForceOwnership); err != nil {
		return live, foo.Classify(action, err)
	}
	return r.decodeStored(f, desired)
}

// appliedDeployment is the argument of an apply, and then contains only what the API server has responded. Apply decodes the
// response into its argument, where a field that the response lacks, because an admission policy removes it, would keep the
// value that was sent.
type appliedDeployment struct {
	*appsv1ac.DeploymentApplyConfiguration
}

// UnmarshalJSON discards what was sent, and decodes the response.
func (a appliedDeployment) UnmarshalJSON(body []byte) error {
	*a.DeploymentApplyConfiguration = appsv1ac.DeploymentApplyConfiguration{}
	return json.Unmarshal(body, a.DeploymentApplyConfiguration)
}

// isOwnedByOthers reports whether a Deployment that the cache lacks, and that an apply is in conflict with, is not owned by the
// Foo. If only the resourceVersion is in conflict, a dry run of the same apply without one shows it.
func (r *FooReconciler) isOwnedByOthers(ctx context.Context, f *v1alpha1.Foo, conflict error) bool {
	if foo.IsOwnedByOthers(conflict) {
		return true
	}
	return foo.IsOwnedByOthers(r.Apply(ctx, foo.Deployment(f, r.image), client.FieldOwner(foo.FieldOwner), client.DryRunAll))
}

// findOthers returns the Deployments of other names that the Foo owns.
func (r *FooReconciler) findOthers(ctx context.Context, f *v1alpha1.Foo) ([]appsv1.Deployment, error) {
	var owned appsv1.DeploymentList
	if err := r.List(ctx, &owned, client.InNamespace(f.Namespace), client.MatchingFields{ownerIndex: string(f.UID)}); err != nil {
		return nil, fmt.Errorf("listing the Deployments of Foo %s: %w: %w", f.Name, foo.ErrStale, err)
	}
	return slices.DeleteFunc(owned.Items, func(deployment appsv1.Deployment) bool {
		return deployment.Name == f.Spec.DeploymentName || !deployment.DeletionTimestamp.IsZero()
	}), nil
}

// deleteOthers deletes the Deployments of other names that the Foo owns.
func (r *FooReconciler) deleteOthers(ctx context.Context, f *v1alpha1.Foo) error {
	others, err := r.findOthers(ctx, f)
	errs := []error{err}
	for i := range others {
		other := &others[i]
		// Not an object of the same name that was created since, and not one that another writer has changed since, for
		// instance by removing the owner reference.
		err := r.Delete(ctx, other, client.Preconditions{UID: &other.UID, ResourceVersion: &other.ResourceVersion},
			client.PropagationPolicy(metav1.DeletePropagationBackground))
		if !foo.IsGone(err) {
			errs = append(errs, foo.Classify("deleting Deployment "+other.Name, err))
		}
	}
	return errors.Join(errs...)
}

// decodeStored turns the API server's response to an apply, which is in the applied configuration, into the object that it
// describes: the newest state, without waiting for the cache. It returns a rejection if admission has changed a desired value.
func (r *FooReconciler) decodeStored(f *v1alpha1.Foo, response runtime.ApplyConfiguration) (*appsv1.Deployment, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(response)
	if err != nil {
		return nil, fmt.Errorf("reading the response to an apply: %w", err)
	}
	live := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, live); err != nil {
		return nil, fmt.Errorf("reading the response to an apply: %w", err)
	}
	if !foo.HasDesiredValues(live, foo.Deployment(f, r.image)) {
		return live, foo.ChangedByAdmission(live.Name)
	}
	return live, nil
}
