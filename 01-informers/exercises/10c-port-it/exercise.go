//go:build start

package portit

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

// Setup adds the controller of Foos to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager) error {
	// TODO: what else triggers a reconciliation of a Foo?
	return ctrl.NewControllerManagedBy(mgr).For(&v1alpha1.Foo{}).Complete(&reconciler{mgr.GetClient()})
}

type reconciler struct {
	client.Client
}

// Reconcile makes the Deployment that a Foo asks for, deletes that of an earlier name, and reports.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	// TODO
	return ctrl.Result{}, nil
}
