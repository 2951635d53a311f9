package patrol

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/04-goop/exercises/internal/patrols"
)

// Patrol is what the check runs.
var Patrol = patrols.Programs{Setup: Setup, Plugin: Plugin}

// Setup adds the controller of Patrols to a manager. Jobs are created in the namespace.
func Setup(mgr ctrl.Manager, namespace string) error {
	r := &reconciler{Client: mgr.GetClient(), live: mgr.GetAPIReader(), namespace: namespace}
	return ctrl.NewControllerManagedBy(mgr).For(&patrols.Patrol{}).Owns(&batchv1.Job{}).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.all)).Complete(r)
}

// finalizer is that of Patrols, and of their Jobs until the result is in the status.
const finalizer = "patrol.example.com/patrol"

type reconciler struct {
	client.Client
	// live reads from the API server.
	live      client.Reader
	namespace string
}

// all enqueues all Patrols.
func (r *reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	var list patrols.PatrolList
	if err := r.List(ctx, &list); err != nil {
		return nil // from a cache that has started, it does not fail
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// action is one write.
type action func(ctx context.Context) error

// Reconcile sends one write at most, which triggers the next reconciliation. The cache says whether there may be something to do, and
// the API server what it is.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	do, err := r.next(ctx, r.Client, req)
	if err != nil || do == nil {
		return ctrl.Result{}, err
	}
	do, err = r.next(ctx, r.live, req)
	if err != nil || do == nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, client.IgnoreNotFound(do(ctx))
}

// next returns what is to be done, or nil.
func (r *reconciler) next(ctx context.Context, from client.Reader, req ctrl.Request) (action, error) {
	s, err := r.read(ctx, from, req.NamespacedName)
	if err != nil || s == nil {
		return nil, client.IgnoreNotFound(err)
	}
	if do := r.nextOfJobs(s); do != nil {
		return do, nil
	}
	current, reason := s.choose()
	if node := s.leftOver(current); node != nil {
		return r.uncordon(node), nil
	}
	switch {
	case !s.patrol.DeletionTimestamp.IsZero():
		if controllerutil.ContainsFinalizer(s.patrol, finalizer) {
			return r.release(s.patrol), nil
		}
		return nil, nil
	case !s.reported(reason):
		return r.report(s.patrol, reason), nil
	case current == nil || s.running != nil:
		return nil, nil
	case !controllerutil.ContainsFinalizer(s.patrol, finalizer):
		return r.patch(s.patrol, func() { controllerutil.AddFinalizer(s.patrol, finalizer) }), nil
	case !current.Spec.Unschedulable && !s.cordoned(current):
		return r.cordon(current, s.patrol.UID), nil
	}
	return r.create(s.patrol, current), nil
}

// patch writes a change, if the object has not changed since it was read.
func (r *reconciler) patch(object client.Object, change func()) action {
	return func(ctx context.Context) error {
		before := client.MergeFromWithOptions(object.DeepCopyObject().(client.Object), client.MergeFromWithOptimisticLock{})
		change()
		return r.Patch(ctx, object, before)
	}
}

// release removes the finalizer.
func (r *reconciler) release(object client.Object) action {
	return r.patch(object, func() { controllerutil.RemoveFinalizer(object, finalizer) })
}

// cordon says with the same write who has cordoned the node.
func (r *reconciler) cordon(node *corev1.Node, by types.UID) action {
	return r.patch(node, func() {
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, patrols.AnnotationCordoned, string(by))
		node.Spec.Unschedulable = true
	})
}

func (r *reconciler) uncordon(node *corev1.Node) action {
	return r.patch(node, func() {
		delete(node.Annotations, patrols.AnnotationCordoned)
		node.Spec.Unschedulable = false
	})
}
