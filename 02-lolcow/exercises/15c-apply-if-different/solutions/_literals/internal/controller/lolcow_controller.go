package controller

import (
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/my-lolcow/api/v1alpha1"
)

// retryAfter is the pause where something is in the way that belongs to someone else.
const retryAfter = 5 * time.Second

// LolcowReconciler reconciles a Lolcow object
type LolcowReconciler struct {
	client.Client
	Scheme   *runtime.Scheme
	Recorder events.EventRecorder
}

// +kubebuilder:rbac:groups=my.domain,resources=lolcows,verbs=list;watch
// +kubebuilder:rbac:groups=my.domain,resources=lolcows/status,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile brings the dependents of one Lolcow to what the spec describes, and reports how they are.
func (r *LolcowReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var lolcow v1alpha1.Lolcow
	if err := r.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	deployment, deploymentErr := r.applyDeployment(ctx, &lolcow)
	serviceErr := r.applyService(ctx, &lolcow)
	failed := errors.Join(deploymentErr, serviceErr)
	if stale(deploymentErr) || stale(serviceErr) {
		return ctrl.Result{}, failed
	}
	if err := r.patchStatus(ctx, &lolcow, conditionOf(deployment, failed)); err != nil {
		return ctrl.Result{}, errors.Join(failed, err)
	}
	for _, err := range []error{deploymentErr, serviceErr} {
		if err != nil && !portConflict(err) && !nameConflict(err) {
			return ctrl.Result{}, failed
		}
	}
	if failed != nil {
		return ctrl.Result{RequeueAfter: retryAfter}, nil
	}
	return ctrl.Result{}, nil
}

// patchStatus writes the status, and announces another reason. Where nothing has changed, the patch has only the lock, and the
// API server writes nothing.
func (r *LolcowReconciler) patchStatus(ctx context.Context, lolcow *v1alpha1.Lolcow, ready condition) error {
	patch := client.MergeFromWithOptions(lolcow.DeepCopy(), client.MergeFromWithOptimisticLock{})
	was := ready.setIn(lolcow)
	if err := r.Status().Patch(ctx, lolcow, patch); err != nil {
		return err
	}
	if eventType := ready.eventType(); eventType != "" && ready.reason != was {
		r.Recorder.Eventf(lolcow, nil, eventType, ready.reason, "Reconcile", "%s", ready.message)
	}
	return nil
}

// SetupWithManager sets up the controller with the Manager.
func (r *LolcowReconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Recorder == nil {
		r.Recorder = mgr.GetEventRecorder("lolcow-controller")
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Lolcow{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Named("lolcow").
		Complete(r)
}
