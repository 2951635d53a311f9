package lyingtest

import (
	"context"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// New returns a reconciler that writes the status of Lolcows.
func New(c client.Client) reconcile.Reconciler { return &reconciler{client: c} }

type reconciler struct{ client client.Client }

// Reconcile writes the status of a Lolcow.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var lolcow v1alpha1.Lolcow
	if err := r.client.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	lolcow.Status.Greeting = lolcow.Spec.Greeting
	lolcow.Status.ObservedGeneration = lolcow.Generation
	apimeta.SetStatusCondition(&lolcow.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonServing,
		ObservedGeneration: lolcow.Generation,
	})
	return reconcile.Result{}, r.client.Status().Update(ctx, &lolcow)
}
