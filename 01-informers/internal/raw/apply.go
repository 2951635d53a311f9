package raw

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
)

// findDeployment returns the Deployment of the name in the spec as the cache has it, whether the Foo owns it or not; nil if
// there is none. A cache that still has one that was deleted for an earlier spec is stale.
func (c *controller) findDeployment(f *v1alpha1.Foo) (*appsv1.Deployment, error) {
	live, err := c.deploymentLister.Deployments(f.Namespace).Get(f.Spec.DeploymentName)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Deployment %s: %w: %w", f.Spec.DeploymentName, foo.ErrStale, err)
	}
	if live.DeletionTimestamp.IsZero() && c.written.isDeleted(keyOf(f), live.UID) {
		return nil, fmt.Errorf("reading Deployment %s, which is deleted: %w", live.Name, foo.ErrStale)
	}
	return live, nil
}

// apply brings the Foo's Deployment in line with the spec and returns it as it is then. live is the Deployment in the
// cache. apply writes only if a field that this controller owns differs, so that nothing is written in steady state. Fields
// that other writers own are left to them.
func (c *controller) apply(ctx context.Context, f *v1alpha1.Foo, live *appsv1.Deployment) (*appsv1.Deployment, error) {
	desired := foo.Deployment(f, c.image)
	options := metav1.ApplyOptions{FieldManager: foo.FieldOwner}
	if live == nil {
		// Not forced, and only if there is no such object: one that was created since is not adopted.
		desired = desired.WithResourceVersion(foo.CreateOnlyResourceVersion)
	} else {
		if foo.InSync(live, desired) {
			return live, nil
		}
		// Forced: another writer that changed a field of ours loses the ownership of it. With the resourceVersion, a Deployment
		// that changed since it was read is not overwritten: it may no longer be the Foo's. With the uid, a Deployment that was
		// deleted since is not created again.
		options.Force = true
		desired = desired.WithUID(live.UID).WithResourceVersion(live.ResourceVersion)
	}

	applied, err := c.deployments.Deployments(f.Namespace).Apply(ctx, desired, options)
	if live == nil && apierrors.IsConflict(err) && c.isOwnedByOthers(ctx, f, err) {
		return nil, foo.NameConflict(f.Spec.DeploymentName)
	}
	if err != nil {
		return live, foo.Classify("applying Deployment "+f.Spec.DeploymentName, err)
	}
	c.written.noteDeployment(keyOf(f), applied.ResourceVersion)
	if !foo.HasDesiredValues(applied, foo.Deployment(f, c.image)) {
		return applied, foo.ChangedByAdmission(applied.Name)
	}
	return applied, nil
}

// isOwnedByOthers reports whether a Deployment that the cache lacks, and that an apply is in conflict with, is not owned by the
// Foo. If only the resourceVersion is in conflict, a dry run of the same apply without one shows it.
func (c *controller) isOwnedByOthers(ctx context.Context, f *v1alpha1.Foo, conflict error) bool {
	if foo.IsOwnedByOthers(conflict) {
		return true
	}
	_, err := c.deployments.Deployments(f.Namespace).Apply(ctx, foo.Deployment(f, c.image),
		metav1.ApplyOptions{FieldManager: foo.FieldOwner, DryRun: []string{metav1.DryRunAll}})
	return foo.IsOwnedByOthers(err)
}

// findOthers returns the Deployments of other names that the Foo owns.
func (c *controller) findOthers(f *v1alpha1.Foo) ([]*appsv1.Deployment, error) {
	owned, err := c.deploymentIndexer.ByTypedIndex(ownerIndex, string(f.UID))
	if err != nil {
		return nil, fmt.Errorf("finding the Deployments of Foo %s: %w", f.Name, err)
	}
	return slices.DeleteFunc(slices.Clone(owned), func(deployment *appsv1.Deployment) bool {
		// The index has no namespaces: any user may write a uid into an owner reference.
		return deployment.Namespace != f.Namespace || deployment.Name == f.Spec.DeploymentName || !deployment.DeletionTimestamp.IsZero()
	}), nil
}

// deleteOthers deletes the Deployments of other names that the Foo owns.
func (c *controller) deleteOthers(ctx context.Context, f *v1alpha1.Foo) error {
	others, err := c.findOthers(f)
	errs := []error{err}
	var deleted []types.UID
	for _, other := range others {
		// Not an object of the same name that was created since, and not one that another writer has changed since, for
		// instance by removing the owner reference.
		err := c.deployments.Deployments(other.Namespace).Delete(ctx, other.Name, metav1.DeleteOptions{
			Preconditions:     &metav1.Preconditions{UID: &other.UID, ResourceVersion: &other.ResourceVersion},
			PropagationPolicy: new(metav1.DeletePropagationBackground),
		})
		if err == nil || foo.IsGone(err) {
			deleted = append(deleted, other.UID)
			continue
		}
		errs = append(errs, foo.Classify("deleting Deployment "+other.Name, err))
	}
	c.written.noteDeleted(keyOf(f), deleted)
	return errors.Join(errs...)
}
