package controller

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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

// Reconcile brings the Deployment and the Service of one Lolcow to what its spec describes, and reports how they are.
func (r *LolcowReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var lolcow v1alpha1.Lolcow
	if err := r.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	deployment, deploymentErr := r.ensureDeployment(ctx, &lolcow)
	serviceErr := r.ensureService(ctx, &lolcow)

	// Where nothing has changed, the patch has only the lock, and the API server writes nothing.
	patch := client.MergeFromWithOptions(lolcow.DeepCopy(), client.MergeFromWithOptimisticLock{})
	setStatus(&lolcow, deployment, errors.Join(deploymentErr, serviceErr))
	if err := r.Status().Patch(ctx, &lolcow, patch); err != nil {
		return ctrl.Result{}, err
	}
	if portConflict(serviceErr) {
		return ctrl.Result{Requeue: true}, deploymentErr
	}
	return ctrl.Result{}, errors.Join(deploymentErr, serviceErr)
}

func (r *LolcowReconciler) ensureDeployment(ctx context.Context, lolcow *v1alpha1.Lolcow) (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{}
	err := r.Get(ctx, client.ObjectKeyFromObject(lolcow), deployment)
	if apierrors.IsNotFound(err) {
		deployment = newDeployment(lolcow)
		return deployment, r.Create(ctx, deployment)
	}
	if err != nil {
		return deployment, err
	}
	greeting := &deployment.Spec.Template.Spec.Containers[0].Env[0]
	if greeting.Value == lolcow.Spec.Greeting && *deployment.Spec.Replicas == *lolcow.Spec.Replicas {
		return deployment, nil
	}
	greeting.Value, deployment.Spec.Replicas = lolcow.Spec.Greeting, lolcow.Spec.Replicas
	return deployment, r.Update(ctx, deployment)
}

func (r *LolcowReconciler) ensureService(ctx context.Context, lolcow *v1alpha1.Lolcow) error {
	service := &corev1.Service{}
	err := r.Get(ctx, client.ObjectKeyFromObject(lolcow), service)
	if apierrors.IsNotFound(err) {
		return r.Create(ctx, newService(lolcow))
	}
	if err != nil || lolcow.Spec.Port == nil || service.Spec.Ports[0].NodePort == *lolcow.Spec.Port {
		return err
	}
	service.Spec.Ports[0].NodePort = *lolcow.Spec.Port
	return r.Update(ctx, service)
}

// SetupWithManager sets up the controller with the Manager.
func (r *LolcowReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Lolcow{}).
		Named("lolcow").
		Complete(r)
}
