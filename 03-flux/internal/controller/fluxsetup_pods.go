package controller

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// setupOfPod is the name of the FluxSetup that a pod is for. Owns would not find it, because the owner of a pod is a
// Job.
func setupOfPod(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[labelInstance]}
}

// rankOf is the rank of a broker's pod, which is its index in the Job; -1 if it has none.
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

// replacementOf is the name of a second pod of rank 0, "" if there is none. first is the name of the first one; if it
// is "", the first one in pods is taken. The Job controller never replaces a pod whose end it has counted. It does not
// count a pod whose finalizer another writer has removed.
func replacementOf(first string, pods []corev1.Pod) string {
	for i := range pods {
		if rankOf(&pods[i]) > 0 {
			continue
		}
		if first = cmp.Or(first, pods[i].Name); first != pods[i].Name {
			return pods[i].Name
		}
	}
	return ""
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

// brokerStatus is the status of the broker's container; nil if the kubelet has not reported it. A pod may have other
// containers, which were injected.
func brokerStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == containerName {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// hasEnded reports whether a broker's pod has ended, or is being deleted.
func hasEnded(pod *corev1.Pod) bool {
	status := brokerStatus(pod)
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded ||
		(status != nil && status.State.Terminated != nil)
}

// startFailure is why a broker does not start, according to the kubelet or the scheduler. The most
// urgent failure is reported; if they are equally urgent, the one of the lowest rank.
type startFailure struct {
	// urgency is 0 for the most urgent.
	urgency int
	// lasting: it is a failure at any time. Otherwise it is a failure only once the time to start has expired.
	lasting         bool
	reason, message string
}

// podsTimeout is how long the Job controller may take to create the pods of a Job. It takes less than a second, unless
// something rejects them.
const podsTimeout = 15 * time.Second

// untilPodsAreMissed is how long the Job controller may still take to create the pods of a Job that was started; 0 if they
// exist, or if that time has expired. No event is sent for a pod that is not created.
func untilPodsAreMissed(setup *v1alpha1.FluxSetup, observed setupObservation) time.Duration {
	if startTime(observed.job).IsZero() || !slices.Contains(byRank(observed.pods, setup.Spec.Size), nil) {
		return 0
	}
	return max(0, startTime(observed.job).Add(podsTimeout).Sub(observed.now))
}

// startFailureOf is the most urgent reason why the quorum is not reached; nil if there is none yet. late is set once
// the time to start has expired: then there is always a reason.
func startFailureOf(setup *v1alpha1.FluxSetup, observed setupObservation, late bool) *startFailure {
	var worst *startFailure
	missed := !startTime(observed.job).IsZero() && untilPodsAreMissed(setup, observed) == 0
	for rank, pod := range byRank(observed.pods, setup.Spec.Size) {
		one := &startFailure{urgency: 3, lasting: missed, reason: v1alpha1.ReasonPodsNotCreated, message: noPodMessage(setup)}
		if pod != nil {
			one = failureOfPod(rank, pod)
		}
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
			message: fmt.Sprintf("all brokers run, and fewer than %d of them are connected", setup.Spec.MinSize),
		}
	}
	return worst
}

// noPodMessage says where the reason is found, also after the Job was deleted.
func noPodMessage(setup *v1alpha1.FluxSetup) string {
	return fmt.Sprintf("no pod is created: the Events of the Job say why (kubectl events --for job/%s), for example a quota or the Pod Security Standard of the namespace", jobName(setup))
}

// failureOfPod is why one broker does not start; nil if there is no reason.
func failureOfPod(rank int, pod *corev1.Pod) *startFailure {
	if scheduled := podCondition(pod, corev1.PodScheduled); scheduled != nil && scheduled.Status == corev1.ConditionFalse {
		return &startFailure{urgency: 1, lasting: true, reason: v1alpha1.ReasonUnschedulable, message: scheduled.Message}
	}
	status := brokerStatus(pod)
	switch {
	case isReady(pod):
		return nil
	case hasEnded(pod):
		return &startFailure{urgency: 3, reason: v1alpha1.ReasonPodNotStarted, message: "it has ended, and the quorum was not reached"}
	}
	if failure := failureOfContainers(pod); failure != nil {
		return failure
	}
	switch {
	case status != nil && status.State.Running != nil && rank == 0:
		// Rank 0 is ready when the quorum is reached: the reason is another rank.
		return nil
	case status != nil && status.State.Running != nil:
		return &startFailure{urgency: 4, reason: v1alpha1.ReasonQuorumNotReached, message: "it runs, and is not ready"}
	case status != nil && status.State.Waiting != nil:
		return &startFailure{urgency: 2, reason: v1alpha1.ReasonPodNotStarted, message: status.State.Waiting.Reason}
	}
	return &startFailure{urgency: 3, reason: v1alpha1.ReasonPodNotStarted, message: "the kubelet has not started it"}
}

// failureOfContainers is why the kubelet cannot start a container of a pod; nil if it can. Those that were injected count too:
// the broker waits for the end, or the start, of init containers.
func failureOfContainers(pod *corev1.Pod) *startFailure {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		message, pull := waitMessage(&status)
		waiting, ended := status.State.Waiting, status.LastTerminationState.Terminated
		switch {
		case pull:
			return &startFailure{urgency: 0, lasting: true, reason: v1alpha1.ReasonImageNotPulled, message: message}
		case message != "" && status.Name != containerName:
			message = "container " + status.Name + ": " + message
		case waiting != nil && ended != nil && endReasons[waiting.Reason]:
			message = endMessage(status.Name, ended)
		}
		if message != "" {
			return &startFailure{urgency: 2, lasting: true, reason: v1alpha1.ReasonPodNotStarted, message: message}
		}
	}
	return nil
}
