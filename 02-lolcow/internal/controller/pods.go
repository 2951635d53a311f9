package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// startFailure is why a pod does not serve, as the kubelet or the scheduler says. The most urgent one is reported, and
// among equally urgent ones that of the first pod by name: the order in which pods are listed must not change the message.
type startFailure struct {
	// urgency is 0 for the most urgent.
	urgency         int
	reason, message string
}

// podsOfTemplate returns the pods whose container is that of the Deployment's present template, because those of an earlier
// template do not show what is wrong with the present spec. If no pod has it, it returns all pods: admission may have changed
// the container.
func podsOfTemplate(deployment *appsv1.Deployment, pods []corev1.Pod) []corev1.Pod {
	if deployment == nil {
		return pods
	}
	desired := ourContainer(deployment.Spec.Template.Spec)
	present := slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool {
		actual := ourContainer(pod.Spec)
		return actual.Name != desired.Name || actual.Image != desired.Image || !slices.Equal(actual.Args, desired.Args)
	})
	if len(present) == 0 {
		return pods
	}
	return present
}

// ourContainer is the one that serves the greeting; an empty one if there is none.
func ourContainer(pod corev1.PodSpec) corev1.Container {
	for i := range pod.Containers {
		if pod.Containers[i].Name == containerName {
			return pod.Containers[i]
		}
	}
	return corev1.Container{}
}

// startFailureOf is the most urgent failure of the pods; nil if none of them reports one. A pod that is being deleted, or
// that has ended as a whole because its node was shut down, is replaced anyway.
func startFailureOf(pods []corev1.Pod, now time.Time) *startFailure {
	byName := slices.SortedFunc(slices.Values(pods), func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	var found *startFailure
	for i := range byName {
		one := failureOfPod(&byName[i], now)
		if one != nil && !isReplaced(&byName[i]) && (found == nil || one.urgency < found.urgency) {
			found = one
		}
	}
	return found
}

func isReplaced(pod *corev1.Pod) bool {
	return !pod.DeletionTimestamp.IsZero() || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// failureOfPod is why one pod does not serve. Init containers count too: sidecars may have been injected.
func failureOfPod(pod *corev1.Pod, now time.Time) *startFailure {
	statuses := statusesOf(pod)
	for i := range statuses {
		status := &statuses[i]
		message, pull := waitMessage(status)
		if pull {
			return &startFailure{urgency: 0, reason: v1alpha1.ReasonImageNotPulled, message: message}
		}
		if message != "" {
			message = fmt.Sprintf("container %s of pod %s: %s", status.Name, pod.Name, message)
			return &startFailure{urgency: 1, reason: v1alpha1.ReasonContainerNotCreated, message: message}
		}
		if ended := crashOf(status, now); ended != nil {
			message = fmt.Sprintf("container %s of pod %s keeps ending, last with exit code %d (%s): %s",
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

func statusesOf(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// steadyAfter is how long a container has to run until the kubelet no longer counts its earlier ends
// (k8s.io/kubernetes/pkg/kubelet/kubelet.go, HasExpiredFunc of crashLoopBackOff).
const steadyAfter = 10 * time.Minute

// crashOf is the last end of a container that keeps ending; nil if it does not. In a crash loop the container is running,
// terminated and waiting in turn: all of these states give one result, or each would be a write of the status. A
// container that ended once only, for instance because its node was rebooted, is not in a loop. The number of restarts
// is not enough, because it is never reset: the last end counts only if the container had not run for long, and has not since.
func crashOf(status *corev1.ContainerStatus, now time.Time) *corev1.ContainerStateTerminated {
	waiting, running := status.State.Waiting, status.State.Running
	ends, last := status.RestartCount, status.LastTerminationState.Terminated
	if status.State.Terminated != nil {
		ends, last = ends+1, status.State.Terminated
	}
	switch {
	case status.Ready || last == nil:
		return nil
	case waiting != nil && endReasons[waiting.Reason]:
		return last
	case ends < 2 || !endedSoon(last) || (running != nil && now.Sub(running.StartedAt.Time) >= steadyAfter):
		return nil
	}
	return last
}

// endedSoon reports whether a container had not run for long when it ended, or not at all. The times
// are unknown if the kubelet could not observe its end.
func endedSoon(ended *corev1.ContainerStateTerminated) bool {
	if ended.Reason == "StartError" || ended.Reason == "ContainerCannotRun" {
		return true
	}
	return !ended.FinishedAt.IsZero() && ended.FinishedAt.Sub(ended.StartedAt.Time) < steadyAfter
}

// untilSteady is how long it takes until the first container that keeps ending, and is running now, has run for long; 0 if
// there is none. No event announces it.
func untilSteady(pods []corev1.Pod, now time.Time) time.Duration {
	var first time.Duration
	for i := range pods {
		for _, status := range statusesOf(&pods[i]) {
			if status.State.Running == nil || crashOf(&status, now) == nil {
				continue
			}
			// The kubelet's clock may be ahead.
			wait := min(steadyAfter, status.State.Running.StartedAt.Add(steadyAfter).Sub(now))
			if first == 0 || wait < first {
				first = wait
			}
		}
	}
	return first
}
