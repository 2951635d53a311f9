package raw

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
)

// findDeployment returns the Deployment of the name in the spec as the cache has it, whoever's it is; nil if
// there is none.
func (c *controller) findDeployment(f *v1alpha1.Foo) (*appsv1.Deployment, error) {
	live, err := c.deploymentLister.Deployments(f.Namespace).Get(f.Spec.DeploymentName)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Deployment %s: %w: %w", f.Spec.DeploymentName, foo.ErrStale, err)
	}
	return live, nil
}

// apply brings the Foo's Deployment in line with the spec and returns what it is now. live is what the cache
// has of it. It writes only if what this controller owns of it differs, so that nothing is written in steady
// state. What other writers own is theirs.
func (c *controller) apply(ctx context.Context, f *v1alpha1.Foo, live *appsv1.Deployment) (*appsv1.Deployment, error) {
	desired := foo.Deployment(f, c.image)
	options := metav1.ApplyOptions{FieldManager: foo.FieldOwner}
	if live != nil {
		if foo.InSync(live, desired) {
			return live, nil
		}
		// Forced: a writer that changed a field of ours loses it. The uid keeps the force from falling on
		// another object that has got the name since.
		options.Force = true
		desired = desired.WithUID(live.UID)
	}

	applied, err := c.deployments.Deployments(f.Namespace).Apply(ctx, desired, options)
	if live == nil && foo.IsOwnedByOthers(err) {
		// Not forced, because the cache had none: an object that is not ours has been created since, and nothing
		// of it is adopted.
		return nil, foo.NameConflict(f.Spec.DeploymentName)
	}
	if err != nil {
		return live, foo.Classify("applying Deployment "+f.Spec.DeploymentName, err)
	}
	c.written.deployment(keyOf(f), applied.ResourceVersion)
	return applied, nil
}

// deleteOthers deletes the Deployments that this Foo made under other names.
func (c *controller) deleteOthers(ctx context.Context, f *v1alpha1.Foo) error {
	owned, err := c.deploymentIndexer.ByTypedIndex(ownerIndex, string(f.UID))
	if err != nil {
		return fmt.Errorf("finding the Deployments of Foo %s: %w", f.Name, err)
	}
	var errs []error
	for _, other := range owned {
		if other.Name == f.Spec.DeploymentName || !other.DeletionTimestamp.IsZero() {
			continue
		}
		// The uid: what has taken the name since is not ours to delete.
		err := c.deployments.Deployments(other.Namespace).Delete(ctx, other.Name, metav1.DeleteOptions{
			Preconditions:     metav1.NewUIDPreconditions(string(other.UID)),
			PropagationPolicy: new(metav1.DeletePropagationBackground),
		})
		if !apierrors.IsNotFound(err) {
			errs = append(errs, foo.Classify("deleting Deployment "+other.Name, err))
		}
	}
	return errors.Join(errs...)
}
