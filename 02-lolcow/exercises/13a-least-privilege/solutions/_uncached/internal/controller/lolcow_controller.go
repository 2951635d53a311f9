package controller

import (
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/my-lolcow/api/v1alpha1"
)

// portRetry is how long a port that another Service has is left alone.
const portRetry = 10 * time.Second

// LolcowReconciler reconciles a Lolcow object
type LolcowReconciler struct {
	client.Client
	Scheme *runtime.Scheme
}

// +kubebuilder:rbac:groups=my.domain,resources=lolcows,verbs=list;watch

// Reconcile brings the Deployment and the Service of one Lolcow to what its spec describes, and reports how they are.
func (r *LolcowReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var lolcow v1alpha1.Lolcow
	if err := r.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	deployment, deploymentErr := r.ensureDeployment(ctx, &lolcow)
	serviceErr := r.ensureService(ctx, &lolcow)
	failed := errors.Join(deploymentErr, serviceErr)
	if err := r.updateStatus(ctx, &lolcow, deployment, failed); err != nil {
		return ctrl.Result{}, errors.Join(failed, err)
	}
	if portConflict(serviceErr) {
		return ctrl.Result{RequeueAfter: portRetry}, deploymentErr
	}
	return ctrl.Result{}, failed
}

// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;create;patch

func (r *LolcowReconciler) ensureDeployment(ctx context.Context, lolcow *v1alpha1.Lolcow) (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{}
	deployment.Name, deployment.Namespace = lolcow.Name, lolcow.Namespace
	_, err := controllerutil.CreateOrPatch(ctx, r.Client, deployment, func() error {
		desiredDeployment(lolcow, deployment)
		return nil
	})
	return deployment, err
}

// +kubebuilder:rbac:groups="",resources=services,verbs=get;create;patch

func (r *LolcowReconciler) ensureService(ctx context.Context, lolcow *v1alpha1.Lolcow) error {
	service := &corev1.Service{}
	service.Name, service.Namespace = lolcow.Name, lolcow.Namespace
	_, err := controllerutil.CreateOrPatch(ctx, r.Client, service, func() error {
		desiredService(lolcow, service)
		return nil
	})
	return err
}

// +kubebuilder:rbac:groups=my.domain,resources=lolcows/status,verbs=update

// updateStatus writes the status if it has changed. The update has the resourceVersion that was read: it fails if another
// controller has written meanwhile.
func (r *LolcowReconciler) updateStatus(ctx context.Context, lolcow *v1alpha1.Lolcow, deployment *appsv1.Deployment, failed error) error {
	before := lolcow.Status.DeepCopy()
	setStatus(lolcow, deployment, failed)
	if equality.Semantic.DeepEqual(*before, lolcow.Status) {
		return nil
	}
	return r.Status().Update(ctx, lolcow)
}

// uncached reads dependents from the API server, and all else from the cache.
type uncached struct {
	client.Client
	reader client.Reader
}

// Get reads an object.
func (c uncached) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	switch object.(type) {
	case *appsv1.Deployment, *corev1.Service:
		return c.reader.Get(ctx, key, object, options...)
	}
	return c.Client.Get(ctx, key, object, options...)
}

// SetupWithManager sets up the controller with the Manager.
func (r *LolcowReconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.Client = uncached{Client: r.Client, reader: mgr.GetAPIReader()}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Lolcow{}).
		Named("lolcow").
		Complete(r)
}
