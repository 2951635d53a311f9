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
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
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
	// gatherPause is how long events of pods and nodes are collected before they trigger a single reconciliation.
	gatherPause = 250 * time.Millisecond

	// deletionPause is the same for pods that are being deleted. It is shorter, because the operator has to change the
	// DaemonSet before its controller creates a pod that would run finished work again.
	deletionPause = 20 * time.Millisecond

	// goopIndex is the index of objects by the name of the Goop in their label.
	goopIndex = "goop"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// SetupWithManager defines what triggers a reconciliation.
func (r *GoopReconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	if options.RateLimiter == nil {
		options.RateLimiter = newRateLimiter()
	}
	for kind, index := range map[client.Object]client.IndexerFunc{
		&corev1.Pod{}: indexGoop, &appsv1.DaemonSet{}: indexDependent, &corev1.ConfigMap{}: indexDependent,
	} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, kind, goopIndex, index); err != nil {
			return fmt.Errorf("indexing %T: %w", kind, err)
		}
	}
	nameReleased := handler.Funcs{DeleteFunc: enqueueByName}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Goop{}, builder.WithPredicates(moreThanMessages(conditionsOfGoop))).
		// Only observedGeneration is needed from the status of a DaemonSet, because the pods are watched.
		Owns(&appsv1.DaemonSet{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, ownersChanged, observedGenerationChanged))).
		Owns(&corev1.ConfigMap{}).
		Watches(&appsv1.DaemonSet{}, nameReleased).
		Watches(&corev1.ConfigMap{}, nameReleased).
		// Shards may have lost their owner reference, or their owner may no longer exist.
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

// ownersChanged lets an update trigger a reconciliation if the owner references have changed.
var ownersChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return !apiequality.Semantic.DeepEqual(e.ObjectOld.GetOwnerReferences(), e.ObjectNew.GetOwnerReferences())
}}

// observedGenerationChanged lets an update trigger a reconciliation if the DaemonSet controller has observed a new spec.
var observedGenerationChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return e.ObjectOld.(*appsv1.DaemonSet).Status.ObservedGeneration != e.ObjectNew.(*appsv1.DaemonSet).Status.ObservedGeneration
}}

func conditionsOfGoop(object *v1alpha1.Goop) []metav1.Condition { return object.Status.Conditions }

func indexGoop(object client.Object) []string {
	if goop := object.GetLabels()[v1alpha1.LabelGoop]; goop != "" {
		return []string{goop}
	}
	return nil
}

// indexDependent also indexes a dependent by its owner, because a user or an admission policy may have removed its
// labels.
func indexDependent(object client.Object) []string {
	goops := indexGoop(object)
	if isOurs(object) {
		goops = append(goops, metav1.GetControllerOf(object).Name)
	}
	return goops
}

func requestsByLabel(_ context.Context, object client.Object) (requests []reconcile.Request) {
	for _, goop := range indexGoop(object) {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: goop}})
	}
	return requests
}

// enqueueByName enqueues the Goop that may need the name of a deleted object, if such a Goop exists. The name is that of
// the Goop with a suffix of one or two parts.
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

// podHandler enqueues the Goop of a pod. It collects events, because 5,000 pods cause about 10,000 of them.
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

// nodeChanged enqueues all Goops that may have work on the node: those that have not ended or that are being deleted.
func (r *GoopReconciler) nodeChanged(ctx context.Context, changed bool, q queue) {
	if !changed {
		return
	}
	var goops v1alpha1.GoopList
	// This read does not wait until the cache has the operator's own writes. They do not matter here, and an event handler
	// that waits delays all later events.
	if err := r.List(ctx, &goops, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the Goops that a node may be for")
		return
	}
	for i := range goops.Items {
		if goop := &goops.Items[i]; !goop.Ended() || !goop.DeletionTimestamp.IsZero() {
			q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(goop)}, gatherPause)
		}
	}
}

// sameNode reports whether a change of a node is irrelevant to Goops, as are the kubelet's regular updates.
func sameNode(before, after client.Object) bool {
	return apiequality.Semantic.DeepEqual(before.GetLabels(), after.GetLabels()) &&
		apiequality.Semantic.DeepEqual(before.(*corev1.Node).Spec.Taints, after.(*corev1.Node).Spec.Taints)
}

// CacheOptions are the options of the manager's cache. DaemonSets and ConfigMaps are watched without a selector, because
// objects that are not ours may have a name that a Goop needs. Pods are selected by a label in their DaemonSet's
// selector, because another writer may overwrite any other label.
func CacheOptions() cache.Options {
	ofGoops, err := labels.NewRequirement(v1alpha1.LabelGoop, selection.Exists, nil)
	utilruntime.Must(err)
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&appsv1.DaemonSet{}: {Transform: transform},
			&corev1.ConfigMap{}: {Transform: transform},
			&corev1.Node{}:      {Transform: transform},
			&corev1.Pod{}:       {Transform: transform, Label: labels.NewSelector().Add(*ofGoops)},
		},
	}
}

// transform is a cache transform. It keeps identity, labels and owners of all objects. It also keeps the affinity and the
// observedGeneration of our DaemonSets, even if they have lost their owner; the whole content of our ConfigMaps, and of
// any that is indexed by the name of a Goop, because an update writes the whole object; the taints of nodes; and of pods
// the node and the status of the containers that run the work.
func transform(in any) (any, error) {
	switch object := in.(type) {
	case *appsv1.DaemonSet:
		reduced := &appsv1.DaemonSet{TypeMeta: object.TypeMeta, ObjectMeta: identity(object)}
		if isOurs(object) || object.Labels[labelManagedBy] == managedBy {
			reduced.Spec.Template.Spec.Affinity = object.Spec.Template.Spec.Affinity
			reduced.Status.ObservedGeneration = object.Status.ObservedGeneration
		}
		return reduced, nil
	case *corev1.ConfigMap:
		if isOurs(object) || len(indexGoop(object)) > 0 {
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
	for _, name := range []string{v1alpha1.LabelGoop, v1alpha1.LabelGoopUID, v1alpha1.LabelRound, v1alpha1.LabelRole} {
		if value, ok := pod.Labels[name]; ok {
			reduced.Labels[name] = value
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		reduced.Status.Reason, reduced.Status.Message = pod.Status.Reason, pod.Status.Message
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

// withoutOutput removes the output of workers that have succeeded. The operator does not report it, and the output of all
// workers may exceed the operator's memory limit.
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

// identity returns the metadata that the cache keeps.
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
