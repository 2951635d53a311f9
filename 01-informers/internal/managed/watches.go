package managed

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
)

// SetupWithManager says what triggers a reconciliation. A reconciliation that is under way when the manager is stopped may
// go on until ctx ends.
func (r *FooReconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	if options.RateLimiter == nil {
		options.RateLimiter = newRateLimiter()
	}
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Foo{}).
		Owns(&appsv1.Deployment{}).
		Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(foosNaming(mgr.GetCache()))).
		WithOptions(options).
		Complete(draining(ctx, r))
}

// newRateLimiter limits the rate of retries. Its longest delay is 30 s, so that a user need not wait long after the
// cause of a failure is removed. The default is more than a quarter of an hour.
func newRateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](foo.FirstRetry, foo.LongestRetry)
}

// foosNaming maps any Deployment, whatever owns it, to the Foos whose spec.deploymentName is its name: if it was deleted or
// has lost its owner, they need not wait for the name any longer.
func foosNaming(foos client.Reader) handler.MapFunc {
	return func(ctx context.Context, deployment client.Object) []reconcile.Request {
		var list v1alpha1.FooList
		err := foos.List(ctx, &list, client.InNamespace(deployment.GetNamespace()), client.MatchingFields{deploymentNameIndex: deployment.GetName()})
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Listing the Foos whose spec names a Deployment failed", "deployment", client.ObjectKeyFromObject(deployment))
			return nil
		}
		requests := make([]reconcile.Request, len(list.Items))
		for i := range list.Items {
			requests[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
		}
		return requests
	}
}
