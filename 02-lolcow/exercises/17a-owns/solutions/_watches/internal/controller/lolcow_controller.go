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
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

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

// To delete Deployments and Services is needed to change the owner references of one that is there already.
//
// +kubebuilder:rbac:groups=my.domain,resources=lolcows,verbs=list;watch
// +kubebuilder:rbac:groups=my.domain,resources=lolcows/status,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile brings the dependents of one Lolcow to what the spec describes, and reports how they are.
func (r *LolcowReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	lolcow := &v1alpha1.Lolcow{}
	if err := r.Get(ctx, req.NamespacedName, lolcow); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	meta := metav1.ObjectMeta{Name: lolcow.Name, Namespace: lolcow.Namespace}
	deployment, service := &appsv1.Deployment{ObjectMeta: meta}, &corev1.Service{ObjectMeta: meta}
	deploymentErr := r.ensure(ctx, lolcow, deployment, func() { desiredDeployment(lolcow, deployment) })
	serviceErr := r.ensure(ctx, lolcow, service, func() { desiredService(lolcow, service) })
	failed := errors.Join(deploymentErr, serviceErr)
	if stale(deploymentErr) || stale(serviceErr) {
		return ctrl.Result{}, failed
	}
	if err := r.updateStatus(ctx, lolcow, deployment, failed); err != nil {
		return ctrl.Result{}, errors.Join(failed, err)
	}
	if deploymentErr == nil && portConflict(serviceErr) {
		return ctrl.Result{RequeueAfter: portRetry}, nil
	}
	return ctrl.Result{}, failed
}

// ensure creates or patches a dependent of the Lolcow. To remove the dependent is the garbage collector's: no one has to wait
// for it.
func (r *LolcowReconciler) ensure(ctx context.Context, lolcow *v1alpha1.Lolcow, dependent client.Object, set func()) error {
	_, err := controllerutil.CreateOrPatch(ctx, r.Client, dependent, func() error {
		set()
		return controllerutil.SetControllerReference(lolcow, dependent, r.Scheme, controllerutil.WithBlockOwnerDeletion(false))
	})
	return err
}

// updateStatus writes the status if it has changed, and announces another reason.
func (r *LolcowReconciler) updateStatus(ctx context.Context, lolcow *v1alpha1.Lolcow, deployment *appsv1.Deployment, failed error) error {
	before := lolcow.DeepCopy()
	setStatus(lolcow, deployment, failed)
	if equality.Semantic.DeepEqual(before.Status, lolcow.Status) {
		return nil
	}
	if err := r.Status().Update(ctx, lolcow); err != nil {
		return err
	}
	switch ready := readyOf(lolcow); ready.Reason {
	case readyOf(before).Reason, "RollingOut":
	case "Serving", "ScaledToZero":
		r.Recorder.Eventf(lolcow, nil, corev1.EventTypeNormal, ready.Reason, "Reconcile", "%s", ready.Message)
	default:
		r.Recorder.Eventf(lolcow, nil, corev1.EventTypeWarning, ready.Reason, "Reconcile", "%s", ready.Message)
	}
	return nil
}

// SetupWithManager sets up the controller with the Manager. What only the status of a Lolcow says triggers nothing.
func (r *LolcowReconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Recorder == nil {
		r.Recorder = mgr.GetEventRecorder("lolcow-controller")
	}
	owner := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &v1alpha1.Lolcow{}, handler.OnlyControllerOwner())
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Lolcow{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&appsv1.Deployment{}, owner).
		Watches(&corev1.Service{}, owner).
		Named("lolcow").
		Complete(r)
}
