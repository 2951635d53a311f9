package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
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

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/worker"
)

const (
	// gatherPause is how long events of pods and nodes are gathered before they trigger a reconciliation, one for all
	// of them.
	gatherPause = 250 * time.Millisecond

	// deletionPause is the same for pods that are being deleted. A pod that follows one would do finished work again:
	// it has to be prevented.
	deletionPause = 20 * time.Millisecond

	// goopIndex finds what bears the label of a Goop without looking at everything in its namespace.
	goopIndex = "goop"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// SetupWithManager says what triggers a reconciliation.
func (r *GoopReconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	if options.RateLimiter == nil {
		options.RateLimiter = newRateLimiter()
	}
	for _, kind := range []client.Object{&corev1.Pod{}, &appsv1.DaemonSet{}, &corev1.ConfigMap{}} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, kind, goopIndex, indexGoop); err != nil {
			return fmt.Errorf("indexing %T: %w", kind, err)
		}
	}
	nameReleased := handler.Funcs{DeleteFunc: enqueueByName}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Goop{}).
		// How many pods a DaemonSet has, the pods say.
		Owns(&appsv1.DaemonSet{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		Owns(&corev1.ConfigMap{}).
		Watches(&appsv1.DaemonSet{}, nameReleased).
		Watches(&corev1.ConfigMap{}, nameReleased).
		// A record may have lost its owner, or its owner may be gone.
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(requestsByLabel)).
		Watches(&corev1.Pod{}, podHandler()).
		Watches(&corev1.Node{}, handler.Funcs{
			CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { r.nodeChanged(ctx, !e.IsInInitialList, q) },
			UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
				r.nodeChanged(ctx, !sameNode(e.ObjectOld, e.ObjectNew), q)
			},
			DeleteFunc: func(ctx context.Context, _ event.DeleteEvent, q queue) { r.nodeChanged(ctx, true, q) },
		}).
		WithOptions(options).
		Complete(r)
}

// newRateLimiter paces the retries of what fails. None is further away than a user's patience: the default grows to a
// quarter of an hour.
func newRateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, 30*time.Second)
}

func indexGoop(object client.Object) []string {
	if goop := object.GetLabels()[v1alpha1.LabelGoop]; goop != "" {
		return []string{goop}
	}
	return nil
}

func requestsByLabel(_ context.Context, object client.Object) (requests []reconcile.Request) {
	for _, goop := range indexGoop(object) {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: goop}})
	}
	return requests
}

// enqueueByName enqueues the Goop, if there is one, that may need the deleted object's name: it is the Goop's with a
// suffix of one or two parts.
func enqueueByName(_ context.Context, e event.DeleteEvent, q queue) {
	name := e.Object.GetName()
	for range 2 {
		at := strings.LastIndexByte(name, '-')
		if at < 0 {
			return
		}
		name = name[:at]
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: e.Object.GetNamespace(), Name: name}})
	}
}

// podHandler enqueues the Goop of a pod. Five thousand pods have some ten thousand events, so they are gathered.
func podHandler() handler.EventHandler {
	enqueue := func(object client.Object, q queue) {
		pause := gatherPause
		if object.GetDeletionTimestamp() != nil {
			pause = deletionPause
		}
		for _, goop := range indexGoop(object) {
			q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: goop}}, pause)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { enqueue(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { enqueue(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { enqueue(e.Object, q) },
	}
}

// nodeChanged enqueues all Goops that are not over: any of them may have work for the node, or had.
func (r *GoopReconciler) nodeChanged(ctx context.Context, changed bool, q queue) {
	if !changed {
		return
	}
	var goops v1alpha1.GoopList
	if err := r.List(ctx, &goops, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the Goops that a node may be for")
		return
	}
	for i := range goops.Items {
		if goop := &goops.Items[i]; !goop.Ended() || !goop.DeletionTimestamp.IsZero() {
			q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(goop)}, gatherPause)
		}
	}
}

// sameNode tells whether two states of a node are the same to a Goop. A node changes every few seconds, as it says
// that it is there.
func sameNode(before, after client.Object) bool {
	return apiequality.Semantic.DeepEqual(before.GetLabels(), after.GetLabels()) &&
		apiequality.Semantic.DeepEqual(before.(*corev1.Node).Spec.Taints, after.(*corev1.Node).Spec.Taints)
}

// CacheOptions are what the manager's cache should hold. DaemonSets and ConfigMaps are watched unselected: one that is
// not ours may hold the name that a Goop wants. Only what can matter is kept.
func CacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&appsv1.DaemonSet{}: {Transform: reduce},
			&corev1.ConfigMap{}: {Transform: reduce},
			&corev1.Node{}:      {Transform: reduce},
			&corev1.Pod{}:       {Transform: reduce, Label: labels.SelectorFromSet(labels.Set{labelManagedBy: managedBy})},
		},
	}
}

// reduce is a cache transform. It keeps identity, labels and owners of all; of a DaemonSet of ours where it has pods,
// of a ConfigMap of ours, also if it has lost its owner, everything, as it is written as a whole; of a node its taints, of a pod its node and what its
// workers say.
func reduce(in any) (any, error) {
	switch object := in.(type) {
	case *appsv1.DaemonSet:
		reduced := &appsv1.DaemonSet{TypeMeta: object.TypeMeta, ObjectMeta: identity(object)}
		if isOurs(object) {
			reduced.Spec.Template.Spec.Affinity = object.Spec.Template.Spec.Affinity
		}
		return reduced, nil
	case *corev1.ConfigMap:
		if isOurs(object) || object.Labels[labelManagedBy] == managedBy {
			object.ManagedFields = nil
			return object, nil
		}
		return &corev1.ConfigMap{TypeMeta: object.TypeMeta, ObjectMeta: identity(object)}, nil
	case *corev1.Node:
		return &corev1.Node{
			TypeMeta: object.TypeMeta, ObjectMeta: identity(object), Spec: corev1.NodeSpec{Taints: object.Spec.Taints},
		}, nil
	case *corev1.Pod:
		return reducePod(object), nil
	}
	return in, nil
}

func reducePod(pod *corev1.Pod) *corev1.Pod {
	reduced := &corev1.Pod{
		TypeMeta: pod.TypeMeta, ObjectMeta: identity(pod),
		Spec:   corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
	reduced.Labels = map[string]string{}
	for _, name := range []string{labelManagedBy, v1alpha1.LabelGoop, v1alpha1.LabelRound, v1alpha1.LabelRole} {
		if value, ok := pod.Labels[name]; ok {
			reduced.Labels[name] = value
		}
	}
	if pod.Spec.NodeName == "" {
		reduced.Spec.Affinity = pod.Spec.Affinity
		reduced.Status.Conditions = pod.Status.Conditions
	}
	for _, name := range []string{installContainer, v1alpha1.WorkContainer} {
		if status := initStatus(pod, name); status != nil {
			reduced.Status.InitContainerStatuses = append(reduced.Status.InitContainerStatuses, corev1.ContainerStatus{
				Name: name, Image: status.Image, RestartCount: status.RestartCount,
				State:                withoutOutput(status.State),
				LastTerminationState: withoutOutput(status.LastTerminationState),
			})
		}
	}
	return reduced
}

// withoutOutput leaves out what workers that have succeeded wrote: the operator does not report it, and all together
// it may be more than the operator may take.
func withoutOutput(state corev1.ContainerState) corev1.ContainerState {
	ended := state.Terminated
	if ended == nil || ended.ExitCode != 0 || ended.Message == "" {
		return state
	}
	record, err := worker.ParseRecord(ended.Message)
	if err != nil || record.ExitCode != 0 {
		return state
	}
	record.Output = ""
	message, err := json.Marshal(record)
	if err != nil {
		return state
	}
	reduced := ended.DeepCopy()
	reduced.Message = string(message)
	state.Terminated = reduced
	return state
}

func identity(object metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:              object.GetName(),
		Namespace:         object.GetNamespace(),
		UID:               object.GetUID(),
		ResourceVersion:   object.GetResourceVersion(),
		Generation:        object.GetGeneration(),
		CreationTimestamp: object.GetCreationTimestamp(),
		DeletionTimestamp: object.GetDeletionTimestamp(),
		Labels:            object.GetLabels(),
		OwnerReferences:   object.GetOwnerReferences(),
	}
}

// isOurs tells whether a Goop, any Goop, is the controller of the object.
func isOurs(object metav1.Object) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && owner.Kind == "Goop" && owner.APIVersion == v1alpha1.GroupVersion.String()
}
