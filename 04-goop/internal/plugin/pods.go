package plugin

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/worker"
)

// facts are the state of a worker according to its pod.
type facts struct {
	place
	pod      string
	instance string // the container, once one has started
	restarts int32  // how many containers there were before it
	previous bool   // a later container exists, which only repeats the record
	begun    bool   // a log exists
	ended    bool   // the command has ended and is not retried
	gone     bool   // the pod no longer exists
	record   *worker.Record
}

// reduced keeps the fields of a pod that are used here: 5,000 whole pods would take tens of megabytes.
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
				Name: status.Name, ContainerID: status.ContainerID, RestartCount: status.RestartCount,
				State: status.State, LastTerminationState: status.LastTerminationState,
			}}
		}
	}
	return kept, nil
}

// belongsTo reports whether a pod belongs to this Goop, and not to an earlier one of the same name.
func belongsTo(pod *corev1.Pod, goop *v1alpha1.Goop) bool {
	return pod.Labels[v1alpha1.LabelGoopUID] == string(goop.UID)
}

// factsOf reads a pod. ok is false while the pod has no node.
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
		f.readStatus(&status)
	}
	return f, true
}

// readStatus reads the status of the worker's container. A worker that has left its record ends with 0. After any other
// exit code the kubelet restarts the container. After a restart of the node, the end with 0 is in the last termination
// state.
func (f *facts) readStatus(status *corev1.ContainerStatus) {
	ended, id := status.State.Terminated, status.ContainerID
	f.restarts = status.RestartCount
	if last := status.LastTerminationState.Terminated; last != nil && last.ExitCode == 0 {
		ended, id, f.previous = last, last.ContainerID, true
		f.restarts--
	}
	f.instance = strconv.Itoa(int(f.restarts)) + id
	// While a container waits to be started again, the log is that of the last one.
	f.begun = status.State.Running != nil || ended != nil || status.LastTerminationState.Terminated != nil
	if ended == nil || ended.ExitCode != 0 {
		return
	}
	f.ended = true
	if record, err := worker.ParseRecord(ended.Message); err == nil {
		f.record = &record
	}
}
