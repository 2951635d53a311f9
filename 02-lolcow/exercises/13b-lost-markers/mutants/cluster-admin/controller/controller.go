// Package controller reports whether Lolcows have Pods.
package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// +kubebuilder:rbac:groups=my.domain,resources=lolcows,verbs=list;watch

// Reconciler reports whether a Lolcow has Pods, and has its Service created.
type Reconciler struct {
	Client client.Client
	// EnsureService is the function of the package ports.
	EnsureService func(ctx context.Context, c client.Client, lolcow *v1alpha1.Lolcow) error
}

// Reconcile does so for one Lolcow. All reads are from a cache.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var lolcow v1alpha1.Lolcow
	if err := r.Client.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	count, err := r.countPods(ctx, &lolcow)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.report(ctx, &lolcow, count); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.EnsureService(ctx, r.Client, &lolcow)
}

// countPods counts the Pods of a Lolcow.
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
func (r *Reconciler) countPods(ctx context.Context, lolcow *v1alpha1.Lolcow) (int, error) {
	var pods corev1.PodList
	err := r.Client.List(ctx, &pods, client.InNamespace(lolcow.Namespace), client.MatchingLabels{"lolcow": lolcow.Name})
	return len(pods.Items), err
}

// report writes into the status whether a Lolcow has Pods.
func (r *Reconciler) report(ctx context.Context, lolcow *v1alpha1.Lolcow, count int) error {
	// +kubebuilder:rbac:groups=my.domain,resources=lolcows/status,verbs=patch
	before := lolcow.DeepCopy()
	condition := metav1.Condition{Type: "HasPods", Status: metav1.ConditionFalse, Reason: "Counted"}
	if count > 0 {
		condition.Status = metav1.ConditionTrue
	}
	if !apimeta.SetStatusCondition(&lolcow.Status.Conditions, condition) {
		return nil
	}
	return r.Client.Status().Patch(ctx, lolcow, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
