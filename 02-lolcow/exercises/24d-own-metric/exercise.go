//go:build start

package ownmetric

import (
	"context"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// NewManager returns a manager with the controller that keeps the metric.
func NewManager(config *rest.Config, options ctrl.Options) (ctrl.Manager, error) {
	// TODO: all clients can read the metrics, and yours is not among them.
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, err
	}
	return mgr, ctrl.NewControllerManagedBy(mgr).For(&v1alpha1.Lolcow{}).Complete(&reconciler{client: mgr.GetClient()})
}

type reconciler struct{ client client.Client }

// Reconcile keeps the metric of a Lolcow.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var lolcow v1alpha1.Lolcow
	if err := r.client.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	// TODO: the value of its series.
	return reconcile.Result{}, nil
}
