package controller

import (
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/my-lolcow/api/v1alpha1"
)

// LolcowReconciler reconciles a Lolcow object
type LolcowReconciler struct {
	client.Client
	Scheme *runtime.Scheme
}

// +kubebuilder:rbac:groups=my.domain,resources=lolcows,verbs=list;watch
// +kubebuilder:rbac:groups=my.domain,resources=lolcows/status,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create;patch

// Reconcile brings the Deployment and then the Service of one Lolcow to what its spec describes, and reports how they are, or
// which of them failed.
func (r *LolcowReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var lolcow v1alpha1.Lolcow
	if err := r.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	dependent := metav1.ObjectMeta{Name: lolcow.Name, Namespace: lolcow.Namespace}
	deployment, service := &appsv1.Deployment{ObjectMeta: dependent}, &corev1.Service{ObjectMeta: dependent}
	err := r.ensure(ctx, deployment, func() { desiredDeployment(&lolcow, deployment) })
	if err == nil {
		err = r.ensure(ctx, service, func() { desiredService(&lolcow, service) })
	}
	if err == nil {
		return ctrl.Result{}, r.report(ctx, &lolcow, rolloutCondition(deployment))
	}
	reason := reasonOf(err)
	if reason == "" {
		return ctrl.Result{}, err
	}
	if reportErr := r.report(ctx, &lolcow, failedCondition(reason, err)); reportErr != nil {
		return ctrl.Result{}, errors.Join(err, reportErr)
	}
	if reason == "PortConflict" {
		return ctrl.Result{RequeueAfter: 10 * time.Second}, nil
	}
	return ctrl.Result{}, err
}

// ensure creates a dependent, or patches it if set changes something.
func (r *LolcowReconciler) ensure(ctx context.Context, dependent client.Object, set func()) error {
	err := r.Get(ctx, client.ObjectKeyFromObject(dependent), dependent)
	if apierrors.IsNotFound(err) {
		set()
		return r.Create(ctx, dependent)
	}
	if err != nil {
		return err
	}
	before := dependent.DeepCopyObject().(client.Object)
	set()
	if equality.Semantic.DeepEqual(before, dependent) {
		return nil
	}
	return r.Patch(ctx, dependent, client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{}))
}

// report patches the status if the condition differs.
func (r *LolcowReconciler) report(ctx context.Context, lolcow *v1alpha1.Lolcow, ready metav1.Condition) error {
	before := lolcow.DeepCopy()
	ready.ObservedGeneration = lolcow.Generation
	if !meta.SetStatusCondition(&lolcow.Status.Conditions, ready) {
		return nil
	}
	return r.Status().Patch(ctx, lolcow, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// SetupWithManager sets up the controller with the Manager.
func (r *LolcowReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Lolcow{}).
		Named("lolcow").
		Complete(r)
}
