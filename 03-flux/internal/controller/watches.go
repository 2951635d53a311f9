package controller

import (
	"context"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// podPause is how long events of pods are gathered before they trigger a reconciliation, one for all of them.
const podPause = 250 * time.Millisecond

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// SetupWithManager says what triggers a reconciliation of a Flux.
func (r *FluxReconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager, options controller.Options) error {
	if options.RateLimiter == nil {
		options.RateLimiter = newRateLimiter()
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Flux{}).
		Owns(&v1alpha1.FluxSetup{}).
		Watches(&v1alpha1.FluxSetup{}, handler.Funcs{DeleteFunc: nameReleased}).
		WithOptions(options).
		Complete(r)
}

// SetupWithManager says what triggers a reconciliation of a FluxSetup.
func (r *FluxSetupReconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager, options controller.Options) error {
	if options.RateLimiter == nil {
		options.RateLimiter = newRateLimiter()
	}
	released := handler.Funcs{DeleteFunc: attemptNameReleased}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.FluxSetup{}).
		Owns(&batchv1.Job{}).
		Owns(&corev1.Service{}).
		Watches(&batchv1.Job{}, released).
		Watches(&corev1.ConfigMap{}, released).
		Watches(&corev1.Service{}, handler.Funcs{DeleteFunc: nameReleased}).
		Watches(&corev1.Pod{}, r.podHandler()).
		WithOptions(options).
		Complete(r)
}

// newRateLimiter paces the retries of what fails. None is further away than a user's patience: the default grows to a
// quarter of an hour.
func newRateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, 30*time.Second)
}

// nameReleased enqueues the Flux or FluxSetup, if there is one, whose name the deleted object had.
func nameReleased(_ context.Context, e event.DeleteEvent, q queue) {
	q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)})
}

// attemptNameReleased enqueues the FluxSetup, if there is one, that may need the deleted Job or ConfigMap, or its name,
// which is NAME-ATTEMPT. That of an older operator's Job is NAME.
func attemptNameReleased(ctx context.Context, e event.DeleteEvent, q queue) {
	nameReleased(ctx, e, q)
	key := client.ObjectKeyFromObject(e.Object)
	if dash := strings.LastIndexByte(key.Name, '-'); dash > 0 {
		key.Name = key.Name[:dash]
		q.Add(reconcile.Request{NamespacedName: key})
	}
}

// podHandler enqueues the FluxSetup of a pod. A thousand pods have some thousand events, so they are gathered; only the
// end of a leader triggers a reconciliation at once. What each pod says of its end is noted here, where no event is left
// out: when a reconciliation lists pods, this one may be gone.
func (r *FluxSetupReconciler) podHandler() handler.EventHandler {
	enqueue := func(object client.Object, gone, live bool, q queue) {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return
		}
		request := reconcile.Request{NamespacedName: setupOfPod(pod)}
		if r.terminations.note(pod, gone, live) {
			q.Add(request)
			return
		}
		q.AddAfter(request, podPause)
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { enqueue(e.Object, false, !e.IsInInitialList, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { enqueue(e.ObjectNew, false, true, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { enqueue(e.Object, true, true, q) },
	}
}

// CacheOptions are what the manager's cache should hold, for both controllers. Jobs, ConfigMaps and Services are watched
// unselected: one that no FluxSetup owns may hold the name that a FluxSetup needs. Of those, and of the pods of a Job,
// which are all alike, only what can matter is kept.
func CacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&batchv1.Job{}:      {Transform: reduce},
			&corev1.ConfigMap{}: {Transform: reduce},
			&corev1.Service{}:   {Transform: reduce},
			&corev1.Pod{}:       {Transform: reduce, Label: labels.SelectorFromSet(labels.Set{labelManagedBy: managedBy})},
		},
	}
}

// reduce is a cache transform. It keeps identity, labels and owners of all; of a Job of ours what other writers may
// change, and the conditions; of a pod the status. A Service of ours is kept as it is, managedFields included: they say
// which fields are ours.
func reduce(in any) (any, error) {
	switch object := in.(type) {
	case *batchv1.Job:
		reduced := &batchv1.Job{TypeMeta: object.TypeMeta, ObjectMeta: identity(object)}
		if isOurs(object) {
			reduced.Spec.Suspend = object.Spec.Suspend
			reduced.Spec.Parallelism = object.Spec.Parallelism
			reduced.Spec.ActiveDeadlineSeconds = object.Spec.ActiveDeadlineSeconds
			reduced.Status.Conditions = object.Status.Conditions
		}
		return reduced, nil
	case *corev1.ConfigMap:
		return &corev1.ConfigMap{TypeMeta: object.TypeMeta, ObjectMeta: identity(object)}, nil
	case *corev1.Service:
		if !isOurs(object) {
			return &corev1.Service{TypeMeta: object.TypeMeta, ObjectMeta: identity(object)}, nil
		}
	case *corev1.Pod:
		return &corev1.Pod{TypeMeta: object.TypeMeta, ObjectMeta: identity(object), Status: object.Status}, nil
	}
	return in, nil
}

func identity(object metav1.Object) metav1.ObjectMeta {
	reduced := metav1.ObjectMeta{
		Name:                       object.GetName(),
		Namespace:                  object.GetNamespace(),
		UID:                        object.GetUID(),
		ResourceVersion:            object.GetResourceVersion(),
		CreationTimestamp:          object.GetCreationTimestamp(),
		DeletionTimestamp:          object.GetDeletionTimestamp(),
		DeletionGracePeriodSeconds: object.GetDeletionGracePeriodSeconds(),
		Labels:                     object.GetLabels(),
		OwnerReferences:            object.GetOwnerReferences(),
	}
	for _, name := range []string{annotationStarted, annotationConfigHash, batchv1.JobCompletionIndexAnnotation} {
		if value, ok := object.GetAnnotations()[name]; ok {
			metav1.SetMetaDataAnnotation(&reduced, name, value)
		}
	}
	return reduced
}
