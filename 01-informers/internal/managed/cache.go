package managed

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
)

const (
	// ownerIndex finds the Deployments that a Foo is the controller of, by its uid.
	ownerIndex = "metadata.ownerReferences.uid"
	// deploymentNameIndex finds the Foos whose spec names a Deployment.
	deploymentNameIndex = "spec.deploymentName"
)

// CacheOptions are the options of the manager's cache. Deployments are watched without a selector, because one that no Foo
// owns may have the name that a Foo needs. The cache keeps of it only what decisions need. A read of a kind that is
// not watched is an error, because it would start a watch.
func CacheOptions() cache.Options {
	return cache.Options{
		ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{
			&appsv1.Deployment{}: {Transform: foo.Transform},
		},
	}
}

// addIndexes adds the indexes. It must be called before the caches are filled.
func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &appsv1.Deployment{}, ownerIndex, func(object client.Object) []string {
		if owner := foo.OwnerOf(object); owner != nil {
			return []string{string(owner.UID)}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return indexer.IndexField(ctx, &v1alpha1.Foo{}, deploymentNameIndex, func(object client.Object) []string {
		return []string{object.(*v1alpha1.Foo).Spec.DeploymentName}
	})
}
