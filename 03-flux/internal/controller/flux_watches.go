package controller

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// SetupWithManager says what triggers a reconciliation. The deletion of a FluxSetup that no Flux owns triggers one of the
// Flux of its name.
func (r *FluxReconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager, options controller.Options) error {
	if options.RateLimiter == nil {
		options.RateLimiter = newRateLimiter()
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Flux{}).
		Owns(&v1alpha1.FluxSetup{}).
		Watches(&v1alpha1.FluxSetup{}, handler.Funcs{DeleteFunc: enqueueNamesake}).
		WithOptions(options).
		Complete(r)
}

// newRateLimiter paces the retries of what fails. None is further away than a user's patience: the default grows to a
// quarter of an hour.
func newRateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, 30*time.Second)
}
