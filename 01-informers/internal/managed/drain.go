package managed

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// draining lets a reconciliation that is under way when the manager is stopped go on until it or the context working ends.
// The manager cancels the context of Reconcile at once (pkg/internal/controller/controller.go, Start), also between two
// writes.
func draining(working context.Context, reconciler reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		if working.Err() != nil {
			return ctrl.Result{}, working.Err()
		}
		deadline, _ := ctx.Deadline()
		ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
		defer cancel()
		defer context.AfterFunc(working, cancel)()
		return reconciler.Reconcile(ctx, req)
	})
}
