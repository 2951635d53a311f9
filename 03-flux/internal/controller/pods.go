package controller

import (
	"fmt"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// setupOfPod is the name of the FluxSetup that a pod is for. A pod's owner is a Job, so Owns would not find it.
func setupOfPod(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[labelInstance]}
}

// rankOf is the rank of a broker's pod: its index in the Job; -1 if it has none.
func rankOf(pod *corev1.Pod) int32 {
	rank, err := strconv.ParseInt(pod.Annotations[batchv1.JobCompletionIndexAnnotation], 10, 32)
	if err != nil {
		return -1
	}
	return int32(rank)
}

// byRank returns the pod of each rank, nil where there is none.
func byRank(pods []corev1.Pod, size int32) []*corev1.Pod {
	ranks := make([]*corev1.Pod, size)
	for i := range pods {
		if rank := rankOf(&pods[i]); rank < size {
			ranks[rank] = &pods[i]
		}
	}
	return ranks
}

func isReady(pod *corev1.Pod) bool {
	return pod != nil && isTrue(pod, corev1.PodReady)
}

func isTrue(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	condition := podCondition(pod, kind)
	return condition != nil && condition.Status == corev1.ConditionTrue
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// brokerStatus is the status of the broker's container; nil if the kubelet has not reported it. Others may have been
// injected.
func brokerStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == containerName {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// hasEnded tells whether a broker's pod has ended, or is being deleted.
func hasEnded(pod *corev1.Pod) bool {
	status := brokerStatus(pod)
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded ||
		(status != nil && status.State.Terminated != nil)
}

// startFailure is why a broker does not start, as the kubelet or the scheduler says. Of several the one with the lowest
// urgency is reported, then that of the lowest rank.
type startFailure struct {
	urgency int
	// lasting: it is a failure at any time. Others are, only when the time to start has expired.
	lasting         bool
	reason, message string
}

// startFailureOf is the most telling reason why the quorum is not reached; nil if there is none yet. late is set when the
// time to start has expired: then there is always one.
func startFailureOf(setup *v1alpha1.FluxSetup, pods []corev1.Pod, late bool) *startFailure {
	var worst *startFailure
	for rank, pod := range byRank(pods, setup.Spec.Size) {
		one := failureOfPod(setup, rank, pod)
		if one == nil || (!one.lasting && !late) || (worst != nil && one.urgency >= worst.urgency) {
			continue
		}
		where := fmt.Sprintf("rank %d: ", rank)
		if pod != nil {
			where = fmt.Sprintf("rank %d (pod %s): ", rank, pod.Name)
		}
		one.message = where + one.message
		worst = one
	}
	if worst == nil && late {
		return &startFailure{
			reason:  v1alpha1.ReasonQuorumNotReached,
			message: fmt.Sprintf("all brokers run, and rank 0 has not found %d of them", setup.Spec.MinSize),
		}
	}
	return worst
}

// failureOfPod is why one broker does not start; nil if there is no reason.
func failureOfPod(setup *v1alpha1.FluxSetup, rank int, pod *corev1.Pod) *startFailure {
	if pod == nil {
		return &startFailure{urgency: 3, reason: v1alpha1.ReasonPodNotStarted, message: fmt.Sprintf("there is no pod; the Events of Job %s may say why", jobName(setup))}
	}
	if scheduled := podCondition(pod, corev1.PodScheduled); scheduled != nil && scheduled.Status == corev1.ConditionFalse {
		return &startFailure{urgency: 1, lasting: true, reason: v1alpha1.ReasonUnschedulable, message: scheduled.Message}
	}
	status := brokerStatus(pod)
	switch {
	case isReady(pod):
		return nil
	case hasEnded(pod):
		return &startFailure{urgency: 3, reason: v1alpha1.ReasonPodNotStarted, message: "it has ended, and the quorum was not reached"}
	case status == nil || (status.State.Waiting == nil && status.State.Running == nil):
		return &startFailure{urgency: 3, reason: v1alpha1.ReasonPodNotStarted, message: "the kubelet has not started it"}
	case status.State.Running != nil && rank == 0:
		// It is ready when the quorum is reached: the reason is another rank.
		return nil
	case status.State.Running != nil:
		return &startFailure{urgency: 4, reason: v1alpha1.ReasonQuorumNotReached, message: "it runs, and is not ready"}
	}
	waiting := status.State.Waiting
	if pullReasons[waiting.Reason] {
		return &startFailure{urgency: 0, lasting: true, reason: v1alpha1.ReasonImageNotPulled, message: pullMessage(status.Image, waiting.Message)}
	}
	message := strings.TrimSuffix(waiting.Reason+": "+waiting.Message, ": ")
	lasting := waiting.Reason != "ContainerCreating" && waiting.Reason != "PodInitializing"
	return &startFailure{urgency: 2, lasting: lasting, reason: v1alpha1.ReasonPodNotStarted, message: message}
}
