package actors

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/shared/faults"
)

// Kubelet is that of each node that is not unreachable: it runs the init containers of a pod, one after the other, and then
// the others, and removes a pod that is being deleted. The pods of a node that no longer exists are removed too, as by the
// pod garbage collector.
type Kubelet struct {
	// End is how an init container ends. It runs while End returns nil.
	End func(s *faults.State, pod *corev1.Pod, container string) *corev1.ContainerStateTerminated
}

// Name is that of the program.
func (Kubelet) Name() string { return "kubelet" }

// Act brings one pod one step further.
func (k Kubelet) Act(ctx context.Context, s *faults.State) (bool, error) {
	pods, err := faults.All[corev1.Pod](s)
	if err != nil {
		return false, err
	}
	nodes, err := faults.All[corev1.Node](s)
	if err != nil {
		return false, err
	}
	for _, pod := range pods {
		at := slices.IndexFunc(nodes, func(node *corev1.Node) bool { return node.Name == pod.Spec.NodeName })
		switch {
		case pod.Spec.NodeName == "", at >= 0 && readyOf(nodes[at]) == corev1.ConditionUnknown:
		case at < 0 || pod.DeletionTimestamp != nil:
			return true, client.IgnoreNotFound(s.Client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID}))
		case pod.Status.Phase != corev1.PodFailed && k.run(s, pod):
			return true, s.Client.Status().Update(ctx, pod)
		}
	}
	return false, nil
}

// run brings a pod to the next init container that does not end at once, or to its other containers, and reports whether
// that changed anything.
func (k Kubelet) run(s *faults.State, pod *corev1.Pod) bool {
	status := &pod.Status
	changed := false
	for i, container := range pod.Spec.InitContainers {
		if i == len(status.InitContainerStatuses) {
			changed = true
			status.Phase = corev1.PodPending
			status.InitContainerStatuses = append(status.InitContainerStatuses, corev1.ContainerStatus{
				Name: container.Name, Image: container.Image, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			})
		}
		one := &status.InitContainerStatuses[i]
		if one.State.Terminated != nil {
			continue
		}
		end := k.End(s, pod, container.Name)
		if end == nil {
			return changed
		}
		one.State, changed = corev1.ContainerState{Terminated: end}, true
	}
	if status.Phase == corev1.PodRunning {
		return changed
	}
	status.Phase = corev1.PodRunning
	status.Conditions = append(status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		})
	}
	return true
}
