package managed

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// draining lets a pass that is under way when the manager is told to stop come to its end, or to that of the
// context passes. The manager cancels the context of Reconcile at once
// (pkg/internal/controller/controller.go, Start), which would tear the pass apart between two writes.
func draining(passes context.Context, reconciler reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		if passes.Err() != nil {
			return ctrl.Result{}, passes.Err()
		}
		deadline, _ := ctx.Deadline()
		ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
		defer cancel()
		defer context.AfterFunc(passes, cancel)()
		return reconciler.Reconcile(ctx, req)
	})
}
