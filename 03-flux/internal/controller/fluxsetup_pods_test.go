package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// rankPod is the pod of a rank, after the given changes.
func rankPod(rank string, steps ...func(*corev1.Pod)) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "bees-" + rank, Annotations: map[string]string{batchv1.JobCompletionIndexAnnotation: rank},
	}}
	for _, step := range steps {
		step(&pod)
	}
	return pod
}

func waits(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{
			{Name: "injected"},
			{Name: containerName, Image: "flux", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}},
		}
	}
}

// injected adds an init container, which was injected and is in a state, and for which the broker waits.
func injected(state, last corev1.ContainerState) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		waits("PodInitializing", "")(pod)
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "mesh", Image: "mesh:1", State: state, LastTerminationState: last}}
	}
}

func waitingState(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func unschedulable(pod *corev1.Pod) {
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/2 nodes are available",
	}}
}

func runs(pod *corev1.Pod) {
	makeReady(pod)
	pod.Status.Conditions = nil
}

func TestStartFailure(t *testing.T) {
	t.Parallel()
	leader, ready := rankPod("0", runs), rankPod("1", makeReady)
	none := corev1.ContainerState{}
	crashed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "no route\n"}}
	setup := &v1alpha1.FluxSetup{ObjectMeta: metav1.ObjectMeta{Name: "bees"}, Spec: v1alpha1.FluxSetupSpec{Size: 2, MinSize: 2, Attempt: 1}}
	for name, test := range map[string]struct {
		pods []corev1.Pod
		// reason and message after the time to start has expired, and the reason before.
		reason, message, early string
	}{
		"all run":                      {[]corev1.Pod{leader, ready}, v1alpha1.ReasonQuorumNotReached, "all brokers run, and fewer than 2 of them are connected", ""},
		"image not pulled":             {[]corev1.Pod{leader, rankPod("1", waits("ErrImagePull", "no such host"))}, v1alpha1.ReasonImageNotPulled, "rank 1 (pod bees-1): pulling image flux failed: no such host", v1alpha1.ReasonImageNotPulled},
		"image not pulled, later":      {[]corev1.Pod{leader, rankPod("1", waits("ImagePullBackOff", `Back-off pulling image "flux": ErrImagePull: no such host`))}, v1alpha1.ReasonImageNotPulled, "rank 1 (pod bees-1): pulling image flux failed: no such host", v1alpha1.ReasonImageNotPulled},
		"image with a false name":      {[]corev1.Pod{rankPod("0", waits("InvalidImageName", "")), ready}, v1alpha1.ReasonImageNotPulled, "rank 0 (pod bees-0): pulling image flux failed", v1alpha1.ReasonImageNotPulled},
		"unschedulable":                {[]corev1.Pod{leader, rankPod("1", unschedulable)}, v1alpha1.ReasonUnschedulable, "rank 1 (pod bees-1): 0/2 nodes are available", v1alpha1.ReasonUnschedulable},
		"no configuration":             {[]corev1.Pod{leader, rankPod("1", waits("CreateContainerConfigError", `secret "x" not found`))}, v1alpha1.ReasonPodNotStarted, `rank 1 (pod bees-1): CreateContainerConfigError: secret "x" not found`, v1alpha1.ReasonPodNotStarted},
		"no container":                 {[]corev1.Pod{leader, rankPod("1", waits("CreateContainerError", "out of handles"))}, v1alpha1.ReasonPodNotStarted, "rank 1 (pod bees-1): CreateContainerError: out of handles", v1alpha1.ReasonPodNotStarted},
		"a hook fails":                 {[]corev1.Pod{leader, rankPod("1", waits("PreStartHookError", "no"))}, v1alpha1.ReasonPodNotStarted, "rank 1 (pod bees-1): PreStartHookError: no", v1alpha1.ReasonPodNotStarted},
		"init container, no image":     {[]corev1.Pod{leader, rankPod("1", injected(waitingState("ErrImagePull", "no such host"), none))}, v1alpha1.ReasonImageNotPulled, "rank 1 (pod bees-1): pulling image mesh:1 failed: no such host", v1alpha1.ReasonImageNotPulled},
		"init container, as root":      {[]corev1.Pod{leader, rankPod("1", injected(waitingState("CreateContainerConfigError", "as root"), none))}, v1alpha1.ReasonPodNotStarted, "rank 1 (pod bees-1): container mesh: CreateContainerConfigError: as root", v1alpha1.ReasonPodNotStarted},
		"init container keeps ending":  {[]corev1.Pod{leader, rankPod("1", injected(waitingState("CrashLoopBackOff", "back-off 40s"), crashed))}, v1alpha1.ReasonPodNotStarted, "rank 1 (pod bees-1): container mesh ended with exit code 1 (Error): no route", v1alpha1.ReasonPodNotStarted},
		"init container runs":          {[]corev1.Pod{leader, rankPod("1", injected(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, crashed))}, v1alpha1.ReasonPodNotStarted, "rank 1 (pod bees-1): PodInitializing", ""},
		"a volume that does not exist": {[]corev1.Pod{leader, rankPod("1", waits("ContainerCreating", ""))}, v1alpha1.ReasonPodNotStarted, "rank 1 (pod bees-1): ContainerCreating", ""},
		"no report of the kubelet":     {[]corev1.Pod{leader, rankPod("1")}, v1alpha1.ReasonPodNotStarted, "rank 1 (pod bees-1): the kubelet has not started it", ""},
		"no pod yet":                   {[]corev1.Pod{leader}, v1alpha1.ReasonPodsNotCreated, "rank 1: " + noPodMessage(setup), ""},
		"ended too early":              {[]corev1.Pod{leader, rankPod("1", ended0)}, v1alpha1.ReasonPodNotStarted, "rank 1 (pod bees-1): it has ended, and the quorum was not reached", ""},
		"runs and is not ready":        {[]corev1.Pod{leader, rankPod("1", runs)}, v1alpha1.ReasonQuorumNotReached, "rank 1 (pod bees-1): it runs, and is not ready", ""},
		"the image comes first":        {[]corev1.Pod{rankPod("0", unschedulable), rankPod("1", waits("ErrImagePull", "x"))}, v1alpha1.ReasonImageNotPulled, "rank 1 (pod bees-1): pulling image flux failed: x", v1alpha1.ReasonImageNotPulled},
		"the first rank comes first":   {[]corev1.Pod{rankPod("1", unschedulable), rankPod("0", unschedulable)}, v1alpha1.ReasonUnschedulable, "rank 0 (pod bees-0): 0/2 nodes are available", v1alpha1.ReasonUnschedulable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			late := startFailureOf(setup, setupObservation{pods: test.pods}, true)
			g.Expect(late.reason).To(Equal(test.reason))
			g.Expect(late.message).To(Equal(test.message))

			early := startFailureOf(setup, setupObservation{pods: test.pods}, false)
			if test.early == "" {
				g.Expect(early).To(BeNil(), "that may yet come: %+v", early)
				return
			}
			g.Expect(early.reason).To(Equal(test.early))
			g.Expect(early.message).To(Equal(test.message))
		})
	}
}

// A Job whose pods are rejected sends nothing, neither when a pod should have been there nor later.
func TestPodsThatAreNotCreated(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	setup := &v1alpha1.FluxSetup{ObjectMeta: metav1.ObjectMeta{Name: "bees"}, Spec: v1alpha1.FluxSetupSpec{Size: 2, MinSize: 2, Attempt: 1}}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotationStartTime: start.Format(time.RFC3339)}}}
	leader, ready := rankPod("0", runs), rankPod("1", makeReady)
	for name, test := range map[string]struct {
		observed setupObservation
		wait     time.Duration
		rank     string
	}{
		"not yet":                {setupObservation{job: job, now: start.Add(time.Second)}, 14 * time.Second, ""},
		"the Job is not started": {setupObservation{job: &batchv1.Job{}, now: start.Add(time.Hour)}, 0, ""},
		"all are there":          {setupObservation{job: job, now: start.Add(time.Second), pods: []corev1.Pod{leader, ready}}, 0, ""},
		"none is there":          {setupObservation{job: job, now: start.Add(podsTimeout)}, 0, "rank 0: "},
		"one is missing":         {setupObservation{job: job, now: start.Add(podsTimeout), pods: []corev1.Pod{leader}}, 0, "rank 1: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			g.Expect(untilPodsAreMissed(setup, test.observed)).To(Equal(test.wait))
			failure := startFailureOf(setup, test.observed, false)
			if test.rank == "" {
				g.Expect(failure).To(BeNil())
				return
			}
			g.Expect(failure.reason).To(Equal(v1alpha1.ReasonPodsNotCreated))
			g.Expect(failure.message).To(HavePrefix(test.rank + "no pod is created"))
			g.Expect(failure.message).To(ContainSubstring("kubectl events --for job/bees-1"))
		})
	}
}

func ended0(pod *corev1.Pod) { makeTerminated(pod, 0, "", pod.CreationTimestamp.Time) }

// The kubelet alternates between two reasons while it retries, and the message of the resolver has a different port
// each time.
func TestPullMessageStaysTheSame(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	want := "pulling image flux failed: dial tcp: lookup example.com on 10.0.0.1:53: read udp 10.0.0.1:53: no such host"
	for _, message := range []string{
		"dial tcp: lookup example.com on 10.0.0.1:53: read udp 10.0.0.2:41001->10.0.0.1:53: no such host",
		"dial tcp: lookup example.com on 10.0.0.1:53: read udp 10.0.0.2:41002->10.0.0.1:53: no such host",
		`Back-off pulling image "flux": ErrImagePull: dial tcp: lookup example.com on 10.0.0.1:53: read udp [fd00::2]:41003->10.0.0.1:53: no such host`,
	} {
		g.Expect(pullMessage("flux", message)).To(Equal(want))
	}
	g.Expect(pullMessage("flux", `Back-off pulling image "flux"`)).To(Equal("pulling image flux failed"))
}

func TestPodsAreFoundByRank(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	none, two, nine := corev1.Pod{}, rankPod("2"), rankPod("9")
	g.Expect(rankOf(&none)).To(Equal(int32(-1)))
	g.Expect(rankOf(&two)).To(Equal(int32(2)))
	ranks := byRank([]corev1.Pod{two, nine}, 3)
	g.Expect(ranks).To(HaveLen(3))
	g.Expect(ranks[0]).To(BeNil())
	g.Expect(ranks[2].Name).To(Equal("bees-2"))
}
