package actors

import (
	"context"
	"slices"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/shared/faults"
)

// DaemonSets is the DaemonSet controller, and a scheduler that finds room for each of its pods. It has no back-off.
type DaemonSets struct{}

// Name is that of the controller.
func (DaemonSets) Name() string { return "daemonset-controller" }

// Act makes one step for one DaemonSet: a pod is released, adopted, deleted or created, or, when none of that is left to do,
// the status is written.
func (DaemonSets) Act(ctx context.Context, s *faults.State) (bool, error) {
	daemonSets, err := faults.All[appsv1.DaemonSet](s)
	if err != nil {
		return false, err
	}
	pods, err := faults.All[corev1.Pod](s)
	if err != nil {
		return false, err
	}
	nodes, err := faults.All[corev1.Node](s)
	if err != nil {
		return false, err
	}
	for _, daemonSet := range daemonSets {
		if daemonSet.DeletionTimestamp != nil {
			continue
		}
		for _, step := range []func(context.Context, *faults.State, *daemons) (bool, error){claim, place, observe} {
			if acted, err := step(ctx, s, &daemons{daemonSet, pods, nodes}); acted || err != nil {
				return acted, err
			}
		}
	}
	return false, nil
}

// daemons is a DaemonSet, and all pods and nodes.
type daemons struct {
	set   *appsv1.DaemonSet
	pods  []*corev1.Pod
	nodes []*corev1.Node
}

// on returns the pods of a DaemonSet on a node, the oldest first.
func (d *daemons) on(node *corev1.Node) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(d.pods), func(pod *corev1.Pod) bool {
		return pod.Spec.NodeName != node.Name || !metav1.IsControlledBy(pod, d.set)
	})
}

// claim releases a pod that the selector no longer selects, or adopts one that it does.
func claim(ctx context.Context, s *faults.State, d *daemons) (bool, error) {
	selector, err := metav1.LabelSelectorAsSelector(d.set.Spec.Selector)
	if err != nil {
		return false, err
	}
	for _, pod := range d.pods {
		selected, owner := selector.Matches(labels.Set(pod.Labels)), metav1.GetControllerOf(pod)
		switch {
		case pod.DeletionTimestamp != nil:
		case owner != nil && owner.UID == d.set.UID && !selected:
			pod.OwnerReferences = slices.DeleteFunc(pod.OwnerReferences, func(one metav1.OwnerReference) bool { return one.UID == d.set.UID })
			return true, s.Client.Update(ctx, pod)
		case owner == nil && selected:
			pod.OwnerReferences = append(pod.OwnerReferences, ownerOf(d.set))
			return true, s.Client.Update(ctx, pod)
		}
	}
	return false, nil
}

func ownerOf(daemonSet *appsv1.DaemonSet) metav1.OwnerReference {
	return *metav1.NewControllerRef(daemonSet, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))
}

// place creates the pod that is missing on a node, or deletes one that has failed or is not to be there. While a pod is
// terminating it creates none.
func place(ctx context.Context, s *faults.State, d *daemons) (bool, error) {
	for _, node := range d.nodes {
		starts, stays := runsOn(d.set, node)
		pods := d.on(node)
		if starts && len(pods) == 0 {
			return true, s.Client.Create(ctx, podOf(d.set, node))
		}
		for i, pod := range pods {
			outdated := d.set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType &&
				pod.Labels[templateGeneration] != d.set.Annotations[appsv1.DeprecatedTemplateGeneration]
			if pod.DeletionTimestamp == nil && (!stays || i > 0 || outdated || pod.Status.Phase == corev1.PodFailed) {
				return true, client.IgnoreNotFound(s.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}))
			}
		}
	}
	return false, nil
}

// templateGeneration is the label by which the controller finds pods of an older template. The API server counts the
// templates of a DaemonSet in an annotation.
const templateGeneration = "pod-template-generation"

// podOf is the pod for a node. The scheduler has bound it.
func podOf(daemonSet *appsv1.DaemonSet, node *corev1.Node) *corev1.Pod {
	template := daemonSet.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.GenerateName, pod.Namespace, pod.OwnerReferences = daemonSet.Name+"-", daemonSet.Namespace, []metav1.OwnerReference{ownerOf(daemonSet)}
	metav1.SetMetaDataLabel(&pod.ObjectMeta, templateGeneration, daemonSet.Annotations[appsv1.DeprecatedTemplateGeneration])
	pod.Spec.NodeName = node.Name
	return pod
}

// observe writes the status.
func observe(ctx context.Context, s *faults.State, d *daemons) (bool, error) {
	next := appsv1.DaemonSetStatus{ObservedGeneration: d.set.Generation}
	for _, node := range d.nodes {
		starts, _ := runsOn(d.set, node)
		there := len(d.on(node)) > 0
		switch {
		case starts && there:
			next.DesiredNumberScheduled++
			next.CurrentNumberScheduled++
		case starts:
			next.DesiredNumberScheduled++
		case there:
			next.NumberMisscheduled++
		}
		if starts && slices.ContainsFunc(d.on(node), isReady) {
			next.NumberReady++
		}
	}
	if is := d.set.Status; is.ObservedGeneration == next.ObservedGeneration && is.DesiredNumberScheduled == next.DesiredNumberScheduled &&
		is.CurrentNumberScheduled == next.CurrentNumberScheduled && is.NumberMisscheduled == next.NumberMisscheduled && is.NumberReady == next.NumberReady {
		return false, nil
	}
	d.set.Status = next
	return true, s.Client.Status().Update(ctx, d.set)
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(one corev1.PodCondition) bool {
		return one.Type == corev1.PodReady && one.Status == corev1.ConditionTrue
	})
}

// tolerations are those that the controller adds to all its pods.
var tolerations = []corev1.Toleration{
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeDiskPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodePIDPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
}

// runsOn reports whether a pod of a DaemonSet starts on a node, and whether one that is there stays.
func runsOn(daemonSet *appsv1.DaemonSet, node *corev1.Node) (starts, stays bool) {
	spec := daemonSet.Spec.Template.Spec
	if matches, err := nodeaffinity.NewRequiredNodeAffinity(spec.NodeSelector, spec.Affinity).Match(node); err != nil || !matches {
		return false, false
	}
	starts, stays = true, true
	for _, taint := range node.Spec.Taints {
		if taint.Effect == corev1.TaintEffectPreferNoSchedule ||
			scheduling.TolerationsTolerateTaint(logr.Discard(), slices.Concat(spec.Tolerations, tolerations), &taint, true) {
			continue
		}
		starts, stays = false, stays && taint.Effect != corev1.TaintEffectNoExecute
	}
	return starts, stays
}
