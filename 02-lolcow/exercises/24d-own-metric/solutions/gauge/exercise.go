package ownmetric

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// NewManager returns a manager with the controller that keeps the metric.
func NewManager(config *rest.Config, options ctrl.Options) (ctrl.Manager, error) {
	options.Metrics.SecureServing = true
	options.Metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, err
	}
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "lolcow_port_conflict",
		Help: "1 if another Service has the port of the Lolcow, and 0 if not.",
	}, []string{"namespace", "name"})
	if err := metrics.Registry.Register(gauge); err != nil {
		return nil, err
	}
	r := &reconciler{client: mgr.GetClient(), gauge: gauge}
	return mgr, ctrl.NewControllerManagedBy(mgr).For(&v1alpha1.Lolcow{}).Complete(r)
}

type reconciler struct {
	client client.Client
	gauge  *prometheus.GaugeVec
}

// Reconcile keeps the metric of a Lolcow.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var lolcow v1alpha1.Lolcow
	err := r.client.Get(ctx, req.NamespacedName, &lolcow)
	if apierrors.IsNotFound(err) {
		r.gauge.DeleteLabelValues(req.Namespace, req.Name)
	}
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	ready := apimeta.FindStatusCondition(lolcow.Status.Conditions, v1alpha1.ConditionReady)
	value := 0.0
	if ready != nil && ready.Reason == v1alpha1.ReasonPortConflict {
		value = 1
	}
	r.gauge.WithLabelValues(req.Namespace, req.Name).Set(value)
	return reconcile.Result{}, nil
}
