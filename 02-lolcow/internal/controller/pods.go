package controller

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// startFailure is why a pod does not serve, as the kubelet or the scheduler says. Of several pods' the one with the
// lowest urgency is reported, then the first by name: the order in which pods are listed must not show.
type startFailure struct {
	urgency         int
	reason, message string
}

// startFailureOf is the most telling failure of the pods; nil if none of them reports one. A pod that is being deleted
// is replaced anyway.
func startFailureOf(pods []corev1.Pod) *startFailure {
	byName := slices.SortedFunc(slices.Values(pods), func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	var found *startFailure
	for i := range byName {
		one := failureOfPod(&byName[i])
		if one != nil && byName[i].DeletionTimestamp.IsZero() && (found == nil || one.urgency < found.urgency) {
			found = one
		}
	}
	return found
}

func failureOfPod(pod *corev1.Pod) *startFailure {
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		if waiting := status.State.Waiting; waiting != nil && pullReasons[waiting.Reason] {
			return &startFailure{urgency: 0, reason: v1alpha1.ReasonImageNotPulled, message: pullMessage(status.Image, waiting.Message)}
		}
		if ended := crashOf(status); ended != nil {
			message := fmt.Sprintf("container %s of pod %s keeps ending, last with exit code %d (%s): %s",
				status.Name, pod.Name, ended.ExitCode, ended.Reason, strings.TrimSpace(ended.Message))
			return &startFailure{urgency: 1, reason: v1alpha1.ReasonCrashLoopBackOff, message: strings.TrimSuffix(message, ": ")}
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return &startFailure{urgency: 2, reason: v1alpha1.ReasonUnschedulable, message: fmt.Sprintf("pod %s: %s", pod.Name, condition.Message)}
		}
	}
	return nil
}

// crashOf is the last end of a container that keeps ending; nil if it does not. In a crash loop the container is running,
// terminated and waiting in turn: all of these states give one result, or each would be a write of the status. A
// container that ended once only, for instance because its node was rebooted, is not in a loop.
func crashOf(status *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	waiting, ended := status.State.Waiting, status.State.Terminated
	looping := waiting != nil && waiting.Reason == "CrashLoopBackOff"
	again := status.RestartCount > 1 || (status.RestartCount == 1 && ended != nil)
	if status.Ready || (!looping && !again) {
		return nil
	}
	if ended != nil {
		return ended
	}
	return status.LastTerminationState.Terminated
}
