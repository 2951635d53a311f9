package faults

import (
	"context"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/shared/faults"
)

// brokers are the kubelets, and what runs in the pods: all are ready at once. When the command ends, rank 0 has its exit code,
// and the others end with 0. A broker that is deleted ends by SIGTERM.
type brokers struct{}

// Name is that of the program.
func (brokers) Name() string { return "kubelet" }

// Act brings one pod one step further.
func (brokers) Act(ctx context.Context, s *faults.State) (bool, error) {
	pods, err := faults.All[corev1.Pod](s)
	if err != nil {
		return false, err
	}
	for _, pod := range pods {
		code, ends, err := endOf(s, pod, pods)
		switch {
		case err != nil:
			return false, err
		case pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil:
			run(pod)
		case runs(pod) && ends:
			end(s, pod, code)
		case pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds > 0:
			return true, client.IgnoreNotFound(s.Client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID}))
		default:
			continue
		}
		return true, s.Client.Status().Update(ctx, pod)
	}
	return false, nil
}

// endOf is the exit code of a broker, and whether it ends.
func endOf(s *faults.State, pod *corev1.Pod, pods []*corev1.Pod) (int32, bool, error) {
	if pod.DeletionTimestamp != nil {
		return 143, true, nil
	}
	job := metav1.GetControllerOf(pod)
	if job == nil {
		return 0, false, nil
	}
	if rankOf(pod) != "0" {
		for _, other := range pods {
			owner := metav1.GetControllerOf(other)
			if owner != nil && owner.UID == job.UID && rankOf(other) == "0" {
				return 0, hasEnded(other), nil
			}
		}
		return 0, false, nil
	}
	codes, err := faults.Find[corev1.ConfigMap](s, exitCodes)
	if err != nil || codes == nil || codes.Data[job.Name] == "" {
		return 0, false, err
	}
	code, err := strconv.Atoi(codes.Data[job.Name])
	return int32(code), true, err
}

func rankOf(pod *corev1.Pod) string { return pod.Annotations[batchv1.JobCompletionIndexAnnotation] }

func runs(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning }

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func run(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses = nil
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: true, Started: new(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		})
	}
}

func end(s *faults.State, pod *corev1.Pod, code int32) {
	pod.Status.Phase, pod.Status.Conditions = corev1.PodSucceeded, nil
	reason := "Completed"
	if code != 0 {
		pod.Status.Phase, reason = corev1.PodFailed, "Error"
	}
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		status.Ready, status.Started = false, new(false)
		status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: reason, FinishedAt: metav1.NewTime(s.Clock.Now()),
		}}
	}
}
