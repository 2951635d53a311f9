package closing

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// New returns a reconciler of shops.
func New(c client.Client, clock clock.PassiveClock) reconcile.Reconciler {
	return &reconciler{client: c, clock: clock}
}

type reconciler struct {
	client client.Client
	clock  clock.PassiveClock
}

// Reconcile opens and closes a shop.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var shop corev1.ConfigMap
	if err := r.client.Get(ctx, req.NamespacedName, &shop); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	open := "true"
	if text := shop.Data["closesAt"]; text != "" {
		closesAt, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return reconcile.Result{}, reconcile.TerminalError(err)
		}
		if closesAt.Sub(r.clock.Now()) <= 0 {
			open = "false"
		}
	}
	if shop.Data["open"] != open {
		before := shop.DeepCopy()
		if shop.Data == nil {
			shop.Data = map[string]string{}
		}
		shop.Data["open"] = open
		if err := r.client.Patch(ctx, &shop, client.MergeFrom(before)); err != nil {
			return reconcile.Result{}, err
		}
	}
	if open == "false" {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: time.Minute}, nil
}
