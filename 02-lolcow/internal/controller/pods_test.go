package controller

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

func TestStartFailureIsOfTheFirstPodByName(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	one, two := unpulled("cow-1", "ErrImagePull", "first"), unpulled("cow-2", "ErrImagePull", "second")
	for _, pods := range [][]corev1.Pod{{one, two}, {two, one}} {
		g.Expect(startFailureOf(pods).message).To(Equal("pulling image img failed: first"), "whatever order the cache lists them in")
	}
	one.DeletionTimestamp = new(metav1.Now())
	g.Expect(startFailureOf([]corev1.Pod{one, two}).message).To(ContainSubstring("second"), "the first is replaced anyway")
	g.Expect(startFailureOf(nil)).To(BeNil())
}

func TestPullMessage(t *testing.T) {
	t.Parallel()
	const want = "pulling image img failed: dial tcp: lookup x on 10.96.0.10:53: read udp 10.96.0.10:53: i/o timeout"
	for _, said := range []string{
		"dial tcp: lookup x on 10.96.0.10:53: read udp 10.244.1.5:41234->10.96.0.10:53: i/o timeout",
		"dial tcp: lookup x on 10.96.0.10:53: read udp 10.244.2.9:50001->10.96.0.10:53: i/o timeout",
		`Back-off pulling image "img": ErrImagePull: dial tcp: lookup x on 10.96.0.10:53: read udp 10.244.1.5:41234->10.96.0.10:53: i/o timeout`,
	} {
		NewWithT(t).Expect(pullMessage("img", said)).To(Equal(want))
	}
	NewWithT(t).Expect(pullMessage("img", `Back-off pulling image "img"`)).To(Equal("pulling image img failed"))
}

// ended is the state of a container that has ended with exit code 1.
func ended() corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "no such greeting\n"}}
}

func podOf(status corev1.ContainerStatus) corev1.Pod {
	status.Name = containerName
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "cow-1"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{status}}}
}

// A container in a crash loop is terminated, waiting and running in turn. What is said of it stays the same.
func TestCrashLoopHasOneMessage(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	waiting := func(message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: message}}
	}
	for name, status := range map[string]corev1.ContainerStatus{
		"ended again":   {State: ended(), LastTerminationState: ended(), RestartCount: 1},
		"waiting":       {State: waiting("back-off 10s restarting failed container"), LastTerminationState: ended(), RestartCount: 1},
		"runs again":    {State: running, LastTerminationState: ended(), RestartCount: 2},
		"waits longer":  {State: waiting("back-off 5m0s restarting failed container"), LastTerminationState: ended(), RestartCount: 9},
		"ended at last": {State: ended(), LastTerminationState: ended(), RestartCount: 9},
	} {
		failure := startFailureOf([]corev1.Pod{podOf(status)})
		g.Expect(failure).NotTo(BeNil(), name)
		g.Expect(failure.reason).To(Equal(v1alpha1.ReasonCrashLoopBackOff), name)
		g.Expect(failure.message).To(Equal("container lolcow of pod cow-1 keeps ending, last with exit code 1 (Error): no such greeting"), name)
	}
	for name, status := range map[string]corev1.ContainerStatus{
		"started":                       {State: running},
		"restarted once, with its node": {State: running, LastTerminationState: ended(), RestartCount: 1},
		"ended for the first time":      {State: ended()},
		"serves again":                  {State: running, LastTerminationState: ended(), RestartCount: 5, Ready: true},
	} {
		g.Expect(startFailureOf([]corev1.Pod{podOf(status)})).To(BeNil(), name)
	}
}

func TestUnschedulablePodIsReported(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "cow-1"}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available"},
	}}}
	failure := startFailureOf([]corev1.Pod{pod})
	g.Expect(failure.reason).To(Equal(v1alpha1.ReasonUnschedulable))
	g.Expect(failure.message).To(Equal("pod cow-1: 0/3 nodes are available"))

	g.Expect(startFailureOf([]corev1.Pod{pod, unpulled("cow-2", "ErrImagePull", "no such image")}).reason).
		To(Equal(v1alpha1.ReasonImageNotPulled), "what no retry heals comes first")
}
