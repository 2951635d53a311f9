package controller

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// podsOf lists the pods of one Job from the cache. They are not copied: nobody may change them.
func (r *FluxSetupReconciler) podsOf(ctx context.Context, setup *v1alpha1.FluxSetup, job types.UID) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := r.List(ctx, &pods, client.InNamespace(setup.Namespace), client.MatchingLabels(podSelector(setup)), client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing Pods of FluxSetup %s: %w", setup.Name, err)
	}
	ours := make([]corev1.Pod, 0, len(pods.Items))
	for _, pod := range pods.Items {
		if owner := metav1.GetControllerOf(&pod); owner != nil && owner.UID == job && rankOf(&pod) >= 0 {
			ours = append(ours, pod)
		}
	}
	return ours, nil
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

// brokerStatus is the status of the broker's container; nil if the kubelet has not said anything of it. Others
// may have been injected.
func brokerStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == containerName {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// trouble is what keeps a broker from starting.
type trouble struct {
	// urgency orders troubles: that with the least is told.
	urgency int
	// lasting: it is a trouble at any time. Others are, only when the time for the start is over.
	lasting         bool
	reason, message string
}

// startTrouble is the most telling reason why the quorum is not reached; nil if there is none yet. late is set
// when the time for the start is over: then there is always one.
func startTrouble(setup *v1alpha1.FluxSetup, pods []corev1.Pod, late bool) *trouble {
	var worst *trouble
	for rank, pod := range byRank(pods, setup.Spec.Size) {
		one := troubleOf(setup, rank, pod)
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
		return &trouble{
			reason:  v1alpha1.ReasonQuorumNotReached,
			message: fmt.Sprintf("all brokers run, and rank 0 has not found %d of them", setup.Spec.MinSize),
		}
	}
	return worst
}

// troubleOf is what keeps one broker from starting; nil if nothing does.
func troubleOf(setup *v1alpha1.FluxSetup, rank int, pod *corev1.Pod) *trouble {
	if pod == nil {
		return &trouble{urgency: 3, reason: v1alpha1.ReasonPodNotStarted, message: fmt.Sprintf("there is no pod; the Events of Job %s may say why", setup.Name)}
	}
	if scheduled := podCondition(pod, corev1.PodScheduled); scheduled != nil && scheduled.Status == corev1.ConditionFalse {
		return &trouble{urgency: 1, lasting: true, reason: v1alpha1.ReasonUnschedulable, message: scheduled.Message}
	}
	status := brokerStatus(pod)
	switch {
	case isReady(pod):
		return nil
	case endOfPod(pod, false) != nil:
		return &trouble{urgency: 3, reason: v1alpha1.ReasonPodNotStarted, message: "it has ended, and the quorum was not reached"}
	case status == nil || (status.State.Waiting == nil && status.State.Running == nil):
		return &trouble{urgency: 3, reason: v1alpha1.ReasonPodNotStarted, message: "the kubelet has not started it"}
	case status.State.Running != nil && rank == 0:
		// It is ready when the quorum is reached: the trouble is elsewhere.
		return nil
	case status.State.Running != nil:
		return &trouble{urgency: 4, reason: v1alpha1.ReasonQuorumNotReached, message: "it runs, and is not ready"}
	}
	waiting := status.State.Waiting
	if pullReasons[waiting.Reason] {
		return &trouble{urgency: 0, lasting: true, reason: v1alpha1.ReasonImageNotPulled, message: normalisePullMessage(status.Image, waiting.Message)}
	}
	message := strings.TrimSuffix(waiting.Reason+": "+waiting.Message, ": ")
	lasting := waiting.Reason != "ContainerCreating" && waiting.Reason != "PodInitializing"
	return &trouble{urgency: 2, lasting: lasting, reason: v1alpha1.ReasonPodNotStarted, message: message}
}

// pullReasons are the reasons by which the kubelet says that it has no image for a container
// (k8s.io/kubernetes/pkg/kubelet/images/types.go).
var pullReasons = map[string]bool{
	"ErrImagePull":              true,
	"ImagePullBackOff":          true,
	"InvalidImageName":          true,
	"ErrImageNeverPull":         true,
	"ImageInspectError":         true,
	"RegistryUnavailable":       true,
	"SignatureValidationFailed": true,
}

var (
	backOffPrefix = regexp.MustCompile(`^Back-off pulling image "[^"]*"(: )?(ErrImagePull: )?`)
	// A failed look-up or dial names the local end of the connection, with a new port each time.
	localEnd = regexp.MustCompile(`(\d{1,3}(\.\d{1,3}){3}|\[[0-9a-fA-F:]+\]):\d+->`)
)

// normalisePullMessage makes one text of those that the kubelet alternates between while it retries
// (ErrImagePull and ImagePullBackOff), so that a pull that keeps failing writes one status, not many.
func normalisePullMessage(image, message string) string {
	message = backOffPrefix.ReplaceAllString(message, "")
	message = strings.TrimSpace(localEnd.ReplaceAllString(message, ""))
	if message == "" {
		return "pulling image " + image + " failed"
	}
	return "pulling image " + image + " failed: " + message
}
