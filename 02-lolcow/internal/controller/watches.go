package controller

import (
	"context"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
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

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// portIndex finds the Lolcows whose spec has a node port.
const portIndex = "spec.port"

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// SetupWithManager says what triggers a reconciliation.
func (r *LolcowReconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	if options.RateLimiter == nil {
		options.RateLimiter = newRateLimiter()
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Lolcow{}, portIndex, indexPort); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Lolcow{}, builder.WithPredicates(moreThanMessages(conditionsOfLolcow))).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Watches(&appsv1.Deployment{}, handler.Funcs{DeleteFunc: r.nameReleased}).
		Watches(&corev1.Service{}, handler.Funcs{UpdateFunc: r.portChanged, DeleteFunc: r.serviceDeleted}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(lolcowOfPod)).
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

func conditionsOfLolcow(object *v1alpha1.Lolcow) []metav1.Condition { return object.Status.Conditions }

// CacheOptions are the options of the manager's cache. Deployments and Services are watched without a selector, because
// one that no Lolcow owns may have the name or the node port that a Lolcow needs. The cache keeps of it only what decisions
// need. A Deployment or Service that a Lolcow owns is kept whole, with managedFields: they show which fields are ours.
func CacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&appsv1.Deployment{}: {Transform: transform},
			&corev1.Service{}:    {Transform: transform},
			&corev1.Pod{}:        {Label: labels.SelectorFromSet(labels.Set{labelManagedBy: managedBy})},
		},
	}
}

// transform is a cache transform: of an object that no Lolcow owns it keeps identity, labels and owners, and of
// a Service its ports.
func transform(in any) (any, error) {
	switch object := in.(type) {
	case *appsv1.Deployment:
		if !isOurs(object) {
			return &appsv1.Deployment{TypeMeta: object.TypeMeta, ObjectMeta: identity(object)}, nil
		}
	case *corev1.Service:
		if !isOurs(object) {
			return &corev1.Service{
				TypeMeta:   object.TypeMeta,
				ObjectMeta: identity(object),
				Spec:       corev1.ServiceSpec{Ports: object.Spec.Ports},
			}, nil
		}
	}
	return in, nil
}

// identity is the metadata that the cache keeps.
func identity(object metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:            object.GetName(),
		Namespace:       object.GetNamespace(),
		UID:             object.GetUID(),
		ResourceVersion: object.GetResourceVersion(),
		Labels:          object.GetLabels(),
		OwnerReferences: object.GetOwnerReferences(),
	}
}

func indexPort(object client.Object) []string {
	if port := object.(*v1alpha1.Lolcow).Spec.Port; port != nil {
		return []string{strconv.Itoa(int(*port))}
	}
	return nil
}

// lolcowOfPod maps a pod to its Lolcow. A pod's owner is a ReplicaSet, so Owns would not find it.
func lolcowOfPod(_ context.Context, pod client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{
		Namespace: pod.GetNamespace(), Name: pod.GetLabels()[labelInstance],
	}}}
}

// nameReleased enqueues the Lolcow that has the name of the deleted object, if there is one: it may have waited for the name.
func (r *LolcowReconciler) nameReleased(_ context.Context, e event.DeleteEvent, q queue) {
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)}
	r.retries.forget(request)
	q.Add(request)
}

func (r *LolcowReconciler) serviceDeleted(ctx context.Context, e event.DeleteEvent, q queue) {
	r.nameReleased(ctx, e, q)
	for port := range nodePorts(e.Object) {
		r.enqueueWaitingFor(ctx, port, q)
	}
}

func (r *LolcowReconciler) portChanged(ctx context.Context, e event.UpdateEvent, q queue) {
	kept := nodePorts(e.ObjectNew)
	for port := range nodePorts(e.ObjectOld) {
		if !kept[port] {
			r.enqueueWaitingFor(ctx, port, q)
		}
	}
}

// enqueueWaitingFor enqueues the Lolcows, of any namespace, whose spec has the port. The port is free now, or will be free in
// some milliseconds. So the retries of these Lolcows begin again, with short intervals.
func (r *LolcowReconciler) enqueueWaitingFor(ctx context.Context, port int32, q queue) {
	var lolcows v1alpha1.LolcowList
	// With read-your-writes, a List waits until the cache contains what this client has written. That is not needed here, and an event
	// handler that waits would delay all later events.
	err := r.List(ctx, &lolcows, client.MatchingFields{portIndex: strconv.Itoa(int(port))}, client.DisableReadYourWritesConsistency)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the Lolcows whose spec has a port", "port", port)
		return
	}
	for i := range lolcows.Items {
		request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&lolcows.Items[i])}
		r.portRetries.Forget(request)
		r.retries.forget(request)
		q.Add(request)
	}
}

func nodePorts(object client.Object) map[int32]bool {
	ports := map[int32]bool{}
	service, ok := object.(*corev1.Service)
	if !ok {
		return ports
	}
	for _, port := range service.Spec.Ports {
		if port.NodePort != 0 {
			ports[port.NodePort] = true
		}
	}
	return ports
}
