package controller

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

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

// Reconcile brings the Deployment and the Service of one Lolcow to what its spec describes, and reports how they are. Where
// either fails, the status stays what it was.
func (r *LolcowReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var lolcow v1alpha1.Lolcow
	if err := r.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	meta := metav1.ObjectMeta{Name: lolcow.Name, Namespace: lolcow.Namespace}
	deployment, service := &appsv1.Deployment{ObjectMeta: meta}, &corev1.Service{ObjectMeta: meta}
	_, deploymentErr := controllerutil.CreateOrPatch(ctx, r.Client, deployment, func() error {
		desiredDeployment(&lolcow, deployment)
		return nil
	})
	_, serviceErr := controllerutil.CreateOrPatch(ctx, r.Client, service, func() error {
		desiredService(&lolcow, service)
		return nil
	})
	if err := errors.Join(deploymentErr, serviceErr); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.applyStatus(ctx, &lolcow, desiredStatus(deployment))
}

// SetupWithManager sets up the controller with the Manager.
func (r *LolcowReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Lolcow{}).
		Named("lolcow").
		Complete(r)
}
