package controller

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
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

// podPause is how long events of pods are gathered before they wake the reconciler, once for all of them.
const podPause = 250 * time.Millisecond

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// SetupWithManager says what wakes the reconciler.
func (r *FluxSetupReconciler) SetupWithManager(mgr ctrl.Manager, concurrency int) error {
	namesake := handler.Funcs{DeleteFunc: enqueueNamesake}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.FluxSetup{}).
		Owns(&batchv1.Job{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&corev1.Service{}).
		Watches(&batchv1.Job{}, namesake).
		Watches(&corev1.ConfigMap{}, namesake).
		Watches(&corev1.Service{}, namesake).
		Watches(&corev1.Pod{}, r.podHandler()).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrency,
			// No wait is longer than a user's patience: the default is a quarter of an hour.
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, 30*time.Second),
		}).
		Complete(r)
}

// enqueueNamesake wakes the FluxSetup, if there is one, whose name the deleted object had.
func enqueueNamesake(_ context.Context, e event.DeleteEvent, q queue) {
	q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)})
}

// podHandler wakes the FluxSetup of a pod. A thousand pods have some thousand events, so they are gathered; only
// the end of a leader is worth a pass of its own. What each pod says of its end is noted here, where no event is
// left out: a pass may come when the pod is gone.
func (r *FluxSetupReconciler) podHandler() handler.EventHandler {
	wake := func(object client.Object, gone, live bool, q queue) {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return
		}
		request := reconcile.Request{NamespacedName: setupOfPod(pod)}
		if r.words.note(pod, gone, live) {
			q.Add(request)
			return
		}
		q.AddAfter(request, podPause)
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { wake(e.Object, false, !e.IsInInitialList, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { wake(e.ObjectNew, false, true, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { wake(e.Object, true, true, q) },
	}
}

// setupOfPod is the name of the FluxSetup that a pod is for. A pod's owner is a Job, so Owns would not find it.
func setupOfPod(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[labelInstance]}
}

// CacheOptions are what the manager's cache should hold, for both controllers. Jobs, ConfigMaps and Services are
// watched unselected: one that is not ours may hold the name that a FluxSetup wants. Of those, and of the pods of
// a Job, which are all alike, only what can matter is kept.
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

// reduce is a cache transform. It keeps identity, labels and owners of all; of a Service of ours what it should
// be, of a Job deadline and status, of a pod the status.
func reduce(in any) (any, error) {
	switch object := in.(type) {
	case *batchv1.Job:
		reduced := &batchv1.Job{TypeMeta: object.TypeMeta, ObjectMeta: identity(object)}
		if isOurs(object) {
			reduced.Spec.ActiveDeadlineSeconds = object.Spec.ActiveDeadlineSeconds
			reduced.Status.Conditions = object.Status.Conditions
		}
		return reduced, nil
	case *corev1.ConfigMap:
		return &corev1.ConfigMap{TypeMeta: object.TypeMeta, ObjectMeta: identity(object)}, nil
	case *corev1.Service:
		reduced := &corev1.Service{TypeMeta: object.TypeMeta, ObjectMeta: identity(object)}
		if isOurs(object) {
			reduced.Spec = object.Spec
		}
		return reduced, nil
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
	for _, name := range []string{annotationNonce, batchv1.JobCompletionIndexAnnotation} {
		if value, ok := object.GetAnnotations()[name]; ok {
			metav1.SetMetaDataAnnotation(&reduced, name, value)
		}
	}
	return reduced
}

// isOurs tells whether a FluxSetup, any FluxSetup, is the controller of the object.
func isOurs(object metav1.Object) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && owner.Kind == "FluxSetup" && owner.APIVersion == v1alpha1.GroupVersion.String()
}
