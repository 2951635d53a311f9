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

// setUp says what wakes the reconciler, how many Foos are worked on at once, and how long a Foo whose pass
// ended in an error waits.
func setUp(mgr ctrl.Manager, workers int, reconciler reconcile.Reconciler) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Foo{}).
		Owns(&appsv1.Deployment{}).
		Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(wanting(mgr.GetCache()))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
				foo.FirstRetry, foo.LongestRetry),
		}).
		Complete(reconciler)
}

// wanting maps a Deployment, anybody's, to the Foos that want its name: it may be free now.
func wanting(foos client.Reader) handler.MapFunc {
	return func(ctx context.Context, deployment client.Object) []reconcile.Request {
		var list v1alpha1.FooList
		err := foos.List(ctx, &list, client.InNamespace(deployment.GetNamespace()), client.MatchingFields{wantedIndex: deployment.GetName()})
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Listing the Foos that want a Deployment", "deployment", client.ObjectKeyFromObject(deployment))
			return nil
		}
		requests := make([]reconcile.Request, len(list.Items))
		for i := range list.Items {
			requests[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
		}
		return requests
	}
}
