package ownmetric

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// NewManager returns a manager whose metrics have the conflicts that its cache knows.
func NewManager(config *rest.Config, options ctrl.Options) (ctrl.Manager, error) {
	options.Metrics.SecureServing = true
	options.Metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, err
	}
	if err := metrics.Registry.Register(&collector{reader: mgr.GetCache()}); err != nil {
		return nil, err
	}
	// The controller is there for its watch, which fills the cache.
	return mgr, ctrl.NewControllerManagedBy(mgr).For(&v1alpha1.Lolcow{}).
		Complete(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil }))
}

var conflict = prometheus.NewDesc("lolcow_port_conflict",
	"1 if another Service has the port of the Lolcow, and 0 if not.", []string{"namespace", "name"}, nil)

type collector struct{ reader client.Reader }

// Describe says which metric it has.
func (c *collector) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- conflict }

// Collect makes a series for each Lolcow.
func (c *collector) Collect(series chan<- prometheus.Metric) {
	var lolcows v1alpha1.LolcowList
	if err := c.reader.List(context.Background(), &lolcows); err != nil {
		series <- prometheus.NewInvalidMetric(conflict, err)
		return
	}
	for _, lolcow := range lolcows.Items {
		value := 0.0
		ready := apimeta.FindStatusCondition(lolcow.Status.Conditions, v1alpha1.ConditionReady)
		if ready != nil && ready.Reason == v1alpha1.ReasonPortConflict {
			value = 1
		}
		series <- prometheus.MustNewConstMetric(conflict, prometheus.GaugeValue, value, lolcow.Namespace, lolcow.Name)
	}
}
