package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
	"example.com/workbook/04-goop/internal/worker"
)

// aPod returns a pod of round 3, whose DaemonSet has the uid "three", on node a.
func aPod(change ...func(*corev1.Pod)) *corev1.Pod {
	daemonSet := desiredRound(aGoop(), plan.Round{Number: 3}, testImages)
	daemonSet.UID = "three"
	pod := podOf(daemonSet, "a")
	pod.Name = "job-3-xyz"
	for _, one := range change {
		one(pod)
	}
	return pod
}

func withWork(state corev1.ContainerState) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { setWork(pod, state) }
}

func isTerminating(pod *corev1.Pod) {
	pod.DeletionTimestamp = new(metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
}

func hasRestarted(pod *corev1.Pod) {
	work := &pod.Status.InitContainerStatuses[1]
	work.LastTerminationState, work.State, work.RestartCount = work.State, isRunning, 1
}

func ofDeleted(pod *corev1.Pod) { pod.OwnerReferences[0].UID = "deleted" }

func isEvicted(pod *corev1.Pod) {
	pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, "Evicted", "no disk"
}

func hasFailed(exitCode int32, reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode, Reason: reason, Message: message}}
}

func TestStateOfAPodDecidesItsSummary(t *testing.T) {
	t.Parallel()
	place := plan.Place{Node: "a", Round: 3}
	type facts struct {
		ended, kept, atWork, mayBegin, begun, ending, vanishing bool
		running, unfinished                                     int
		reason                                                  string
	}
	for name, test := range map[string]struct {
		pod      *corev1.Pod
		recorded bool
		want     facts
	}{
		"new":                    {aPod(), false, facts{atWork: true, mayBegin: true, unfinished: 1}},
		"at work":                {aPod(withWork(isRunning)), false, facts{atWork: true, mayBegin: true, begun: true, running: 1, unfinished: 1}},
		"at work, being deleted": {aPod(withWork(isRunning), isTerminating), false, facts{atWork: true, mayBegin: true, begun: true, running: 1, unfinished: 1}},
		"finished":               {aPod(withWork(hasFinished(0, ""))), false, facts{ended: true, kept: true, begun: true}},
		"finished, being deleted": {
			aPod(withWork(hasFinished(0, "")), isTerminating), false, facts{ended: true, vanishing: true, begun: true},
		},
		"finished, its node restarted":          {aPod(withWork(hasFinished(0, "")), hasRestarted), false, facts{ended: true, kept: true, begun: true, running: 1}},
		"recorded":                              {aPod(withWork(hasFinished(0, ""))), true, facts{kept: true, begun: true}},
		"recorded, its node restarted":          {aPod(withWork(hasFinished(0, "")), hasRestarted), true, facts{kept: true, begun: true, running: 1}},
		"recorded, being deleted":               {aPod(withWork(hasFinished(0, "")), isTerminating), true, facts{begun: true}},
		"recorded, evicted":                     {aPod(withWork(hasFinished(0, "")), isEvicted), true, facts{begun: true}},
		"recorded, and a second pod":            {aPod(), true, facts{}},
		"recorded, and a second pod is at work": {aPod(withWork(isRunning)), true, facts{begun: true, running: 1}},
		"killed, to be tried again":             {aPod(withWork(hasFailed(137, "OOMKilled", ""))), false, facts{atWork: true, mayBegin: true, begun: true, unfinished: 1, reason: v1alpha1.ReasonWorkersNotStarted}},
		"does not start":                        {aPod(withWork(hasFailed(128, "StartError", "no such file"))), false, facts{atWork: true, mayBegin: true, unfinished: 1, reason: v1alpha1.ReasonWorkersNotStarted}},
		"image not pulled":                      {aPod(withWork(isWaiting("ErrImagePull", "no"))), false, facts{atWork: true, unfinished: 1, reason: v1alpha1.ReasonImageNotPulled}},
		"being created":                         {aPod(withWork(isWaiting("PodInitializing", ""))), false, facts{atWork: true, mayBegin: true, unfinished: 1}},
		"at work, its DaemonSet deleted":        {aPod(withWork(isRunning), ofDeleted), false, facts{atWork: true, mayBegin: true, begun: true, ending: true, running: 1, unfinished: 1}},
		"finished, its DaemonSet deleted":       {aPod(withWork(hasFinished(0, "")), ofDeleted), false, facts{ended: true, vanishing: true, begun: true}},
		"recorded, its DaemonSet deleted":       {aPod(withWork(hasFinished(0, "")), ofDeleted), true, facts{begun: true}},
		"rejected by the kubelet":               {aPod(isEvicted), false, facts{atWork: true, unfinished: 1, reason: v1alpha1.ReasonWorkersNotStarted}},
		"at work, evicted":                      {aPod(withWork(isRunning), isEvicted), false, facts{atWork: true, mayBegin: true, begun: true, running: 1, unfinished: 1, reason: v1alpha1.ReasonWorkersNotStarted}},
		"not scheduled":                         {aPod(func(pod *corev1.Pod) { pod.Spec.NodeName = "" }), false, facts{unfinished: 1}},
		"of another DaemonSet":                  {aPod(withWork(isRunning), func(pod *corev1.Pod) { pod.OwnerReferences[0].UID = "other" }), false, facts{}},
		"without an owner":                      {aPod(withWork(isRunning), func(pod *corev1.Pod) { pod.OwnerReferences = nil }), false, facts{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for what, pod := range map[string]*corev1.Pod{"whole": test.pod, "reduced": reducePod(test.pod)} {
				g := NewWithT(t)
				all := summarize([]corev1.Pod{*pod}, map[types.UID]podOwner{"three": {round: 3}, "deleted": {round: 3, deleted: true}}, func(p plan.Place) bool { return test.recorded && p == place })
				_, ended := all.ended[place]
				got := facts{
					ended: ended, kept: all.kept[place], atWork: all.atWork["a"], mayBegin: all.mayBegin["a"], begun: all.begun["a"],
					ending: all.ending["a"], vanishing: all.vanishing, running: all.running, unfinished: all.unfinished,
				}
				if all.notStarted != nil {
					got.reason = all.notStarted.reason
				}
				g.Expect(got).To(Equal(test.want), what)
			}
		})
	}
}

func TestRecordHasExitCodeTriesAndOutput(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	all := summarize([]corev1.Pod{*aPod(withWork(hasFinished(3, "the end")))}, map[types.UID]podOwner{"three": {round: 3}}, func(plan.Place) bool { return false })
	g.Expect(all.ended).To(Equal(map[plan.Place]worker.Record{{Node: "a", Round: 3}: {ExitCode: 3, Tries: 1, Output: "the end"}}))
}

func TestStartFailureHasOneMessageForAllRetries(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		state corev1.ContainerState
		last  corev1.ContainerState
		want  string
	}{
		"pull":             {isWaiting("ErrImagePull", "not found"), corev1.ContainerState{}, "a (pod job-3-xyz): pulling image busybox failed: not found"},
		"back-off of pull": {isWaiting("ImagePullBackOff", `Back-off pulling image "busybox": ErrImagePull: not found`), corev1.ContainerState{}, "a (pod job-3-xyz): pulling image busybox failed: not found"},
		"dial":             {isWaiting("ErrImagePull", "read udp 10.0.0.1:4321->10.0.0.2:53: no"), corev1.ContainerState{}, "a (pod job-3-xyz): pulling image busybox failed: read udp 10.0.0.2:53: no"},
		"configuration":    {isWaiting("CreateContainerConfigError", `secret "x" not found`), corev1.ContainerState{}, `a (pod job-3-xyz): CreateContainerConfigError: secret "x" not found`},
		"start":            {hasFailed(128, "StartError", "exec: no"), corev1.ContainerState{}, "a (pod job-3-xyz): container work ended with exit code 128 (StartError): exec: no"},
		"back-off":         {isWaiting("CrashLoopBackOff", "back-off 40s restarting"), hasFailed(128, "StartError", "exec: no"), "a (pod job-3-xyz): container work ended with exit code 128 (StartError): exec: no"},
		"start, again":     {isWaiting("RunContainerError", "exec: no"), hasFailed(128, "StartError", "exec: no"), "a (pod job-3-xyz): container work ended with exit code 128 (StartError): exec: no"},
		"none":             {isWaiting("PodInitializing", ""), corev1.ContainerState{}, ""},
		"running":          {isRunning, corev1.ContainerState{}, ""},
	} {
		pod := aPod(withWork(test.state))
		pod.Status.InitContainerStatuses[1].LastTerminationState = test.last
		message := ""
		if found := startFailureOf(pod); found != nil {
			message = found.message
		}
		NewWithT(t).Expect(message).To(Equal(test.want), name)
	}
}

// The reported failure is the one that a user can do most about, and always the same among equal ones.
func TestMostUrgentStartFailureIsReported(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	on := func(node string, state corev1.ContainerState) corev1.Pod {
		return *aPod(withWork(state), func(pod *corev1.Pod) { pod.Spec.NodeName = node })
	}
	pods := []corev1.Pod{
		on("d", isRunning), on("a", hasFailed(128, "StartError", "no")), on("c", isWaiting("ErrImagePull", "")), on("b", isWaiting("ImagePullBackOff", "")),
		*aPod(func(pod *corev1.Pod) {
			pod.Spec.NodeName = ""
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "no room"}}
		}),
	}
	rounds := map[types.UID]podOwner{"three": {round: 3}}
	none := func(plan.Place) bool { return false }
	g.Expect(summarize(pods, rounds, none).notStarted.message).To(HavePrefix("b (pod job-3-xyz): pulling image"))
	// The message names the same one of two pods on a node, whatever their order: another message would be a write.
	another := on("b", isWaiting("ErrImagePull", ""))
	another.Name = "job-3-abc"
	for _, all := range [][]corev1.Pod{append([]corev1.Pod{another}, pods...), append(pods, another)} {
		g.Expect(summarize(all, rounds, none).notStarted.message).To(HavePrefix("b (pod job-3-abc): pulling image"))
	}
	pods[2], pods[3] = on("c", isRunning), on("b", isRunning)
	g.Expect(summarize(pods, rounds, none).notStarted.message).To(Equal("a node: no room"))
	pods = pods[:4]
	g.Expect(summarize(pods, rounds, none).notStarted.message).To(HavePrefix("a (pod job-3-xyz): container work"))
}
