package controller

import (
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
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
	Scheme   *runtime.Scheme
	Recorder events.EventRecorder
}

// +kubebuilder:rbac:groups=my.domain,resources=lolcows,verbs=list;watch
// +kubebuilder:rbac:groups=my.domain,resources=lolcows/status,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile reads one Lolcow, brings its dependents to what the spec describes, and announces what is new in its status.
func (r *LolcowReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	lolcow := &v1alpha1.Lolcow{}
	if err := r.Get(ctx, req.NamespacedName, lolcow); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	announcer, before := announcerFor(lolcow, r.Recorder), lolcow.Status.DeepCopy()
	result, err := r.reconcile(ctx, lolcow)
	if equality.Semantic.DeepEqual(*before, lolcow.Status) {
		return result, err
	}
	if updateErr := r.Status().Update(ctx, lolcow); updateErr != nil {
		return ctrl.Result{}, errors.Join(err, updateErr)
	}
	announcer.announce()
	return result, err
}

// reconcile writes the dependents, and computes the status of the Lolcow in memory.
func (r *LolcowReconciler) reconcile(ctx context.Context, lolcow *v1alpha1.Lolcow) (ctrl.Result, error) {
	meta := metav1.ObjectMeta{Name: lolcow.Name, Namespace: lolcow.Namespace}
	deployment, service := &appsv1.Deployment{ObjectMeta: meta}, &corev1.Service{ObjectMeta: meta}
	_, deploymentErr := controllerutil.CreateOrPatch(ctx, r.Client, deployment, func() error {
		desiredDeployment(lolcow, deployment)
		return nil
	})
	_, serviceErr := controllerutil.CreateOrPatch(ctx, r.Client, service, func() error {
		desiredService(lolcow, service)
		return nil
	})
	failed := errors.Join(deploymentErr, serviceErr)
	if stale(deploymentErr) || stale(serviceErr) {
		return ctrl.Result{}, failed
	}
	setStatus(lolcow, deployment, failed)
	if deploymentErr == nil && portConflict(serviceErr) {
		return ctrl.Result{RequeueAfter: portRetry}, nil
	}
	return ctrl.Result{}, failed
}

// SetupWithManager sets up the controller with the Manager.
func (r *LolcowReconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Recorder == nil {
		r.Recorder = mgr.GetEventRecorder("lolcow-controller")
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Lolcow{}).
		Named("lolcow").
		Complete(r)
}
