package controller

import (
	"strings"
	"testing"
	"time"

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
		g.Expect(startFailureOf(pods, crashNow).message).To(Equal("pulling image img failed: first"), "whatever order the cache lists them in")
	}
	one.DeletionTimestamp = new(metav1.Now())
	g.Expect(startFailureOf([]corev1.Pod{one, two}, crashNow).message).To(ContainSubstring("second"), "the first is replaced anyway")
	g.Expect(startFailureOf(nil, crashNow)).To(BeNil())
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

// crashNow is when the pods of these tests are observed.
var crashNow = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// ended is the state of a container that has ended with exit code 1, a second after it was started.
func ended() corev1.ContainerState { return endedAfter(time.Second) }

func endedAfter(ran time.Duration) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 1, Reason: "Error", Message: "no such greeting\n",
		StartedAt: metav1.NewTime(crashNow.Add(-time.Hour - ran)), FinishedAt: metav1.NewTime(crashNow.Add(-time.Hour)),
	}}
}

func runningFor(ran time.Duration) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(crashNow.Add(-ran))}}
}

func podOf(status corev1.ContainerStatus) corev1.Pod {
	status.Name = containerName
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "cow-1"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{status}}}
}

// A container in a crash loop is terminated, waiting and running in turn. What is said of it stays the same.
func TestCrashLoopHasOneMessage(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	running := runningFor(time.Minute)
	neverRan := ended()
	neverRan.Terminated.Reason, neverRan.Terminated.StartedAt = "StartError", metav1.NewTime(time.Unix(0, 0))
	lost := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "ContainerStatusUnknown"}}
	waiting := func(message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: message}}
	}
	hook := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PostStartHookError", Message: "it failed"}}
	for name, status := range map[string]corev1.ContainerStatus{
		"ended again":                    {State: ended(), LastTerminationState: ended(), RestartCount: 1},
		"waiting":                        {State: waiting("back-off 10s restarting failed container"), LastTerminationState: ended(), RestartCount: 1},
		"its hook fails":                 {State: hook, LastTerminationState: ended(), RestartCount: 1},
		"runs again":                     {State: running, LastTerminationState: ended(), RestartCount: 2},
		"waits longer":                   {State: waiting("back-off 5m0s restarting failed container"), LastTerminationState: ended(), RestartCount: 9},
		"ended at last":                  {State: ended(), LastTerminationState: ended(), RestartCount: 9},
		"ended at once after a long run": {State: ended(), LastTerminationState: endedAfter(time.Hour), RestartCount: 9},
		"waiting after a long run":       {State: waiting("back-off 10s restarting failed container"), LastTerminationState: endedAfter(time.Hour), RestartCount: 9},
	} {
		failure := startFailureOf([]corev1.Pod{podOf(status)}, crashNow)
		g.Expect(failure).NotTo(BeNil(), name)
		g.Expect(failure.reason).To(Equal(v1alpha1.ReasonCrashLoopBackOff), name)
		g.Expect(failure.message).To(Equal("container lolcow of pod cow-1 keeps ending, last with exit code 1 (Error): no such greeting"), name)
	}
	for name, status := range map[string]corev1.ContainerStatus{
		"started":                                   {State: running},
		"restarted once, with its node":             {State: running, LastTerminationState: ended(), RestartCount: 1},
		"ended for the first time":                  {State: ended()},
		"serves again":                              {State: running, LastTerminationState: ended(), RestartCount: 5, Ready: true},
		"crashed often long ago, and has run since": {State: runningFor(10 * time.Minute), LastTerminationState: ended(), RestartCount: 5},
		"crashed often long ago, and starts again":  {State: running, LastTerminationState: endedAfter(time.Hour), RestartCount: 5},
		"crashed often long ago, and has ended":     {State: endedAfter(time.Hour), LastTerminationState: ended(), RestartCount: 5},
		"crashed often long ago, and was lost":      {State: running, LastTerminationState: lost, RestartCount: 5},
	} {
		g.Expect(startFailureOf([]corev1.Pod{podOf(status)}, crashNow)).To(BeNil(), name)
	}
	unstarted := startFailureOf([]corev1.Pod{podOf(corev1.ContainerStatus{State: neverRan, RestartCount: 1})}, crashNow)
	g.Expect(unstarted).NotTo(BeNil(), "containerd's start time of a container that never ran is 1970")
}

// A container that crashed often has run for three minutes and is not ready. In seven more the kubelet counts its crashes no
// longer, and nothing but time says so.
func TestCrashLoopIsOverInTime(t *testing.T) {
	t.Parallel()
	f := newTestEnv(t)
	f.create("cow", v1alpha1.LolcowSpec{})
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "cow-1", Namespace: f.namespace, Labels: dependentLabels(f.get("cow"))},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: containerName, Image: "img"}}},
	}
	f.Expect(f.client.Create(f.ctx, pod)).To(Succeed())
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: containerName, RestartCount: 5, LastTerminationState: ended(), State: corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(f.clock.Now().Add(-3 * time.Minute))},
		},
	}}
	f.Expect(f.client.Status().Update(f.ctx, pod)).To(Succeed())

	result := f.reconcile("cow")
	f.expectReady(f.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonCrashLoopBackOff)
	f.Expect(result.RequeueAfter).To(Equal(7 * time.Minute))
	f.clock.Step(result.RequeueAfter)
	f.Expect(f.reconcile("cow").RequeueAfter).To(BeZero())
	f.expectReady(f.get("cow"), metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
}

func TestUnschedulablePodIsReported(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "cow-1"}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available"},
	}}}
	failure := startFailureOf([]corev1.Pod{pod}, crashNow)
	g.Expect(failure.reason).To(Equal(v1alpha1.ReasonUnschedulable))
	g.Expect(failure.message).To(Equal("pod cow-1: 0/3 nodes are available"))

	g.Expect(startFailureOf([]corev1.Pod{pod, unpulled("cow-2", "ErrImagePull", "no such image")}, crashNow).reason).
		To(Equal(v1alpha1.ReasonImageNotPulled), "what no retry heals comes first")
}

// The kubelet has the image and cannot start the container: it says why, also as soon as it has tried once.
func TestContainerIsNotStarted(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	waits := func(reason, message string, last corev1.ContainerState) []corev1.Pod {
		waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
		return []corev1.Pod{podOf(corev1.ContainerStatus{State: waiting, LastTerminationState: last})}
	}
	for _, reason := range []string{"CreateContainerError", "PreCreateHookError", "PreStartHookError", "RunContainerError", "ReasonOfALaterVersion"} {
		failure := startFailureOf(waits(reason, "alas", corev1.ContainerState{}), crashNow)
		g.Expect(failure).NotTo(BeNil(), reason)
		g.Expect(failure.reason).To(Equal(v1alpha1.ReasonContainerNotCreated))
		g.Expect(failure.message).To(Equal("container lolcow of pod cow-1: " + reason + ": alas"))
	}
	for _, reason := range []string{"", "ContainerCreating", "PodInitializing"} {
		g.Expect(startFailureOf(waits(reason, "", corev1.ContainerState{}), crashNow)).To(BeNil(), reason)
	}
	neverRan := ended()
	neverRan.Terminated.ExitCode, neverRan.Terminated.Reason, neverRan.Terminated.Message = 128, "StartError", "no such program"
	for _, reason := range []string{"RunContainerError", "CrashLoopBackOff"} {
		failure := startFailureOf(waits(reason, "for 10s", neverRan), crashNow)
		g.Expect(failure).NotTo(BeNil(), reason)
		g.Expect(failure.message).To(HaveSuffix("last with exit code 128 (StartError): no such program"))
	}
}

// The kubelet has the image and cannot create the container: it says so, also of an injected init container.
func TestContainerIsNotCreated(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	const message = "CreateContainerConfigError: container has runAsNonRoot and image will run as root"
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
		Reason: "CreateContainerConfigError", Message: strings.TrimPrefix(message, "CreateContainerConfigError: "),
	}}
	pod := podOf(corev1.ContainerStatus{State: waiting})
	injected := podOf(corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}})
	injected.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "mesh", State: waiting}}
	for container, pod := range map[string]corev1.Pod{"lolcow": pod, "mesh": injected} {
		failure := startFailureOf([]corev1.Pod{pod}, crashNow)
		g.Expect(failure).NotTo(BeNil(), container)
		g.Expect(failure.reason).To(Equal(v1alpha1.ReasonContainerNotCreated))
		g.Expect(failure.message).To(Equal("container " + container + " of pod cow-1: " + message))
	}
}

// A pod that has ended with its node stays until it is deleted. Another has replaced it.
func TestPodThatHasEndedIsNoFailure(t *testing.T) {
	t.Parallel()
	for _, phase := range []corev1.PodPhase{corev1.PodFailed, corev1.PodSucceeded} {
		pod := podOf(corev1.ContainerStatus{State: ended(), RestartCount: 1})
		NewWithT(t).Expect(startFailureOf([]corev1.Pod{pod}, crashNow)).NotTo(BeNil())
		pod.Status.Phase = phase
		NewWithT(t).Expect(startFailureOf([]corev1.Pod{pod}, crashNow)).To(BeNil())
	}
}
