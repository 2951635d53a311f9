package controller

import (
	"context"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// podPause is how long events of pods are collected. All events of that time trigger one reconciliation.
const podPause = 250 * time.Millisecond

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// SetupWithManager registers the controller of Flux and declares what triggers a reconciliation.
func (r *FluxReconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager, options controller.Options) error {
	if options.RateLimiter == nil {
		options.RateLimiter = newRateLimiter()
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Flux{}, builder.WithPredicates(moreThanMessages(conditionsOfFlux))).
		Owns(&v1alpha1.FluxSetup{}).
		Watches(&v1alpha1.FluxSetup{}, handler.Funcs{DeleteFunc: nameReleased}).
		WithOptions(options).
		Complete(r)
}

// SetupWithManager registers the controller of FluxSetup and declares what triggers a reconciliation.
func (r *FluxSetupReconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager, options controller.Options) error {
	if options.RateLimiter == nil {
		options.RateLimiter = newRateLimiter()
	}
	released := handler.Funcs{DeleteFunc: attemptNameReleased}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.FluxSetup{}, builder.WithPredicates(moreThanMessages(conditionsOfFluxSetup))).
		Owns(&batchv1.Job{}).
		Owns(&corev1.Service{}).
		Watches(&v1alpha1.Flux{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(setupRecorded())).
		Watches(&batchv1.Job{}, released).
		Watches(&corev1.ConfigMap{}, released).
		Watches(&corev1.Service{}, handler.Funcs{DeleteFunc: nameReleased}).
		Watches(&corev1.Pod{}, r.podHandler()).
		WithOptions(options).
		Complete(r)
}

// newRateLimiter limits the rate of retries. Its longest delay is 30 s, so that a user need not wait long after the
// cause of a failure is removed. The default is more than a quarter of an hour.
func newRateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, 30*time.Second)
}

// moreThanMessages ignores updates that changed only messages of conditions. The operator itself makes those: if the
// API server rejects a request with a different text each time, each status write would trigger the next reconciliation
// at once, instead of with the back-off of the rate limiter.
func moreThanMessages[O client.Object](conditions func(O) []metav1.Condition) predicate.Predicate {
	neutral := func(object client.Object) O {
		changed := object.DeepCopyObject().(O)
		changed.SetResourceVersion("")
		changed.SetManagedFields(nil)
		for i := range conditions(changed) {
			conditions(changed)[i].Message = ""
		}
		return changed
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		resync := e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion()
		return resync || !apiequality.Semantic.DeepEqual(neutral(e.ObjectOld), neutral(e.ObjectNew))
	}}
}

func conditionsOfFlux(object *v1alpha1.Flux) []metav1.Condition { return object.Status.Conditions }

func conditionsOfFluxSetup(object *v1alpha1.FluxSetup) []metav1.Condition {
	return object.Status.Conditions
}

// setupRecorded passes events of a Flux to the FluxSetup controller if the Flux may have recorded its FluxSetup.
func setupRecorded() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, isFlux := e.ObjectOld.(*v1alpha1.Flux)
			after, _ := e.ObjectNew.(*v1alpha1.Flux)
			return isFlux && !apiequality.Semantic.DeepEqual(before.Status.SetupRef, after.Status.SetupRef)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// nameReleased enqueues the Flux or FluxSetup that has the name of the deleted object. There may be none.
func nameReleased(_ context.Context, e event.DeleteEvent, q queue) {
	q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)})
}

// attemptNameReleased enqueues the FluxSetup that may need the deleted Job or ConfigMap, or its name, which is
// NAME-ATTEMPT. There may be none.
func attemptNameReleased(_ context.Context, e event.DeleteEvent, q queue) {
	key := client.ObjectKeyFromObject(e.Object)
	if dash := strings.LastIndexByte(key.Name, '-'); dash > 0 {
		key.Name = key.Name[:dash]
		q.Add(reconcile.Request{NamespacedName: key})
	}
}

// podHandler enqueues the FluxSetup of a pod. A thousand pods have thousands of events, so they are collected. Only the
// end of a leader triggers a reconciliation at once. The handler also records how each pod ended, because the pod may
// no longer exist when a reconciliation lists pods.
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

// CacheOptions defines what the manager's cache holds for both controllers. Jobs, ConfigMaps and Services are watched
// without a selector, because an object that no FluxSetup owns may have the name that a FluxSetup needs. The transform
// keeps only the fields that are read.
func CacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&batchv1.Job{}:      {Transform: transform},
			&corev1.ConfigMap{}: {Transform: transform},
			&corev1.Service{}:   {Transform: transform},
			&corev1.Pod{}:       {Transform: transform, Label: labels.SelectorFromSet(labels.Set{labelManagedBy: managedBy})},
		},
	}
}

// transform is a cache transform. It keeps the identity, labels and owners of all objects. For a Job it also keeps the
// conditions, the deadline, and the fields that decide how often the Job runs the command, because other writers may
// change them. For a pod it keeps the status. A Service that a FluxSetup owns is kept whole, because its managedFields
// record which fields this controller owns.
func transform(in any) (any, error) {
	switch object := in.(type) {
	case *batchv1.Job:
		reduced := &batchv1.Job{TypeMeta: object.TypeMeta, ObjectMeta: identity(object)}
		reduced.Spec = decisive(&object.Spec)
		reduced.Spec.ActiveDeadlineSeconds = object.Spec.ActiveDeadlineSeconds
		reduced.Status.Conditions = object.Status.Conditions
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

// identity returns the metadata that the cache keeps, with the annotations that are read from it.
// annotationCertificates is not among them: only launch needs it, and launch bypasses the cache.
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
	for _, name := range []string{annotationStarted, annotationStartTime, annotationConfigHash, batchv1.JobCompletionIndexAnnotation} {
		if value, ok := object.GetAnnotations()[name]; ok {
			metav1.SetMetaDataAnnotation(&reduced, name, value)
		}
	}
	return reduced
}
