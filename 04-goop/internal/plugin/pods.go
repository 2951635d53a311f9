package plugin

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/worker"
)

// facts are what a pod tells of its worker.
type facts struct {
	place
	pod      string
	instance string // of the container, once there has been one
	begun    bool   // there is a log
	ended    bool   // the command is over, and is not tried again
	gone     bool   // the pod is
	record   *worker.Record
}

// reduced leaves of a pod what is asked for here: 5,000 whole ones would fill tens of megabytes.
func reduced(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	kept := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			CreationTimestamp: pod.CreationTimestamp,
			Labels: map[string]string{
				v1alpha1.LabelRound: pod.Labels[v1alpha1.LabelRound], v1alpha1.LabelGoopUID: pod.Labels[v1alpha1.LabelGoopUID],
			},
		},
		Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName},
	}
	for _, status := range pod.Status.InitContainerStatuses {
		if status.Name == v1alpha1.WorkContainer {
			kept.Status.InitContainerStatuses = []corev1.ContainerStatus{{
				Name: status.Name, ContainerID: status.ContainerID, RestartCount: status.RestartCount, State: status.State,
			}}
		}
	}
	return kept, nil
}

// belongsTo tells whether a pod with the name of a Goop is that Goop's, and not of another that had its name. A pod
// without the uid was made by an operator that did not write it: then its age decides.
func belongsTo(pod *corev1.Pod, goop *v1alpha1.Goop) bool {
	if uid := pod.Labels[v1alpha1.LabelGoopUID]; uid != "" {
		return uid == string(goop.UID)
	}
	return !pod.CreationTimestamp.Before(&goop.CreationTimestamp)
}

// factsOf reads a pod. It is not ok while the pod has no node.
func factsOf(pod *corev1.Pod) (f facts, ok bool) {
	round, err := strconv.ParseInt(pod.Labels[v1alpha1.LabelRound], 10, 32)
	if err != nil || pod.Spec.NodeName == "" {
		return facts{}, false
	}
	f = facts{place: place{node: pod.Spec.NodeName, round: int32(round)}, pod: pod.Name}
	for _, status := range pod.Status.InitContainerStatuses {
		if status.Name != v1alpha1.WorkContainer {
			continue
		}
		f.instance = strconv.Itoa(int(status.RestartCount)) + status.ContainerID
		f.begun = status.State.Running != nil || status.State.Terminated != nil
		// A worker that has left its record ends with 0. Any other end is that of the worker itself: the kubelet
		// starts it again.
		if ended := status.State.Terminated; ended != nil && ended.ExitCode == 0 {
			f.ended = true
			if record, err := worker.ParseRecord(ended.Message); err == nil {
				f.record = &record
			}
		}
	}
	return f, true
}
