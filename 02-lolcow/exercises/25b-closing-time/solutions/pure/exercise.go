package closing

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
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
	open, left, err := state(shop.Data["closesAt"], r.clock.Now())
	if err != nil {
		logf.FromContext(ctx).Error(err, "Cannot read closesAt")
		return reconcile.Result{}, nil
	}
	if shop.Data["open"] != open {
		desired := corev1ac.ConfigMap(shop.Name, shop.Namespace).WithUID(shop.UID).WithData(map[string]string{"open": open})
		if err := r.client.Apply(ctx, desired, client.FieldOwner("closing"), client.ForceOwnership); err != nil {
			return reconcile.Result{}, err
		}
	}
	// A clock may be set while nothing happens: look again once in a while.
	return reconcile.Result{RequeueAfter: min(left, longest)}, nil
}

// longest is how long it trusts the clock.
const longest = 4 * time.Hour

// state says whether a shop is open, and how long it stays so. It stays closed, and without a time it stays open: 0.
func state(closesAt string, now time.Time) (string, time.Duration, error) {
	if closesAt == "" {
		return "true", 0, nil
	}
	closing, err := time.Parse(time.RFC3339Nano, closesAt)
	if err != nil || !now.Before(closing) {
		return "false", 0, err
	}
	return "true", closing.Sub(now), nil
}
