package controller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// +kubebuilder:rbac:groups=my.domain,resources=lolcows,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=my.domain,resources=lolcows/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=my.domain,resources=lolcows/finalizers,verbs=update

// Reconcile creates the Deployment of one Lolcow, or brings it to what the spec describes.
func (r *LolcowReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	lolcow := &v1alpha1.Lolcow{}
	if err := r.Get(ctx, req.NamespacedName, lolcow); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	desired := desiredDeployment(lolcow)
	live := &appsv1.Deployment{}
	err := r.Get(ctx, client.ObjectKeyFromObject(desired), live)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, r.Create(ctx, desired)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	update := live.DeepCopy()
	update.Spec = desired.Spec
	// The API server sets its defaults, and stores nothing.
	planned := update.DeepCopy()
	if err := r.Update(ctx, planned, client.DryRunAll); err != nil {
		return ctrl.Result{}, err
	}
	if equality.Semantic.DeepEqual(live.Spec, planned.Spec) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.Update(ctx, update)
}

// SetupWithManager sets up the controller with the Manager.
func (r *LolcowReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Lolcow{}).
		Named("lolcow").
		Complete(r)
}
