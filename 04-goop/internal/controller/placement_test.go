package controller

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

// The kubelet rejects each pod, and the DaemonSet controller creates another. The status reports the reason once.
func TestPodsAreRejected(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(workers(1))
	reject := func() {
		pod := f.pod("a/0")
		pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted"
		pod.Status.Message = "The node had condition: [DiskPressure]. "
		f.Expect(f.client.Status().Update(f.ctx, pod)).To(Succeed())
		f.settle()
	}
	f.recorded()
	reject()
	f.Expect(f.expectNotRunning(v1alpha1.ReasonWorkersNotStarted).Message).To(Equal(f.node("a") + ": Evicted: The node had condition: [DiskPressure]."))
	f.Expect(f.recorded()).To(HaveExactElements(HavePrefix("Warning WorkersNotStarted")))
	before := f.requests.written()
	f.removePod(f.pod("a/0"))
	f.simulateDaemonSets()
	reject()
	f.Expect(f.requests.written()).To(Equal(before), "another pod changes nothing")
	f.removePod(f.pod("a/0"))
	f.simulateDaemonSets()
	f.runs("a/0")
	f.expectRunning(v1alpha1.ReasonWorking)
}

// New work prefers healthy nodes, and work that no kubelet has accepted moves away from an unhealthy node. Work that has
// begun stays.
func TestUnhealthyNodes(t *testing.T) {
	t.Parallel()
	for name, taint := range map[string]corev1.Taint{
		"unreachable":   {Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute},
		"not ready":     {Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule},
		"short of disk": {Key: corev1.TaintNodeDiskPressure, Effect: corev1.TaintEffectNoSchedule},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "b", "c")
			f.join("a", taint)
			f.create(workers(2))
			f.Expect(f.places()).To(Equal([]string{"b/0", "c/0"}))
			f.runs("b/0")
			f.taint("b", taint)
			f.taint("c", taint)
			f.taint("a")
			f.settle()
			f.Expect(f.places()).To(Equal([]string{"a/0", "b/0"}))
			f.taint("a", taint)
			f.expectSteadyState()
			f.Expect(f.places()).To(Equal([]string{"a/0", "b/0"}), "without a healthy node nothing moves")
			f.taint("a", corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
			f.taint("c")
			f.expectSteadyState()
			f.Expect(f.places()).To(Equal([]string{"a/0", "b/0"}), "a cordoned node is healthy")
		})
	}
}

// A node has disk pressure, and its kubelet rejects the worker. The work runs elsewhere.
func TestRejectedWorkMoves(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(workers(1), cleanup)
	pod := f.pod("a/0")
	pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted"
	f.Expect(f.client.Status().Update(f.ctx, pod)).To(Succeed())
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"a/0"}))
	f.taint("a", corev1.Taint{Key: corev1.TaintNodeDiskPressure, Effect: corev1.TaintEffectNoSchedule})
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"b/0"}))
	f.ends(0, "", "b/0")
	f.delete()
	f.Expect(f.places()).To(Equal([]string{"b/cleanup"}), "no work has begun on a")
}

// A finished pod counts with its requests. If another worker of the Goop has no room because of that, the finished pod is
// deleted with its log, after its result was recorded. Without requests it stays.
func TestRoomOfFinishedWork(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		requests          corev1.ResourceList
		unrecorded, stays bool
	}{
		"with requests":                 {corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("600m")}, false, false},
		"with requests, and unrecorded": {corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("600m")}, true, true},
		"without requests":              {nil, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a")
			f.create(workers(2), func(s *v1alpha1.GoopSpec) { s.Resources = &corev1.ResourceRequirements{Requests: test.requests} })
			f.removePod(f.pod("a/1"))
			waiting := podOf(f.daemonSets()["job-1"], "")
			waiting.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: nodeSelectorOf(plan.Round{Nodes: []string{f.node("a")}}),
			}}
			f.Expect(f.client.Create(f.ctx, waiting)).To(Succeed())
			waiting.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "Insufficient cpu"}}
			f.Expect(f.client.Status().Update(f.ctx, waiting)).To(Succeed())
			f.kubelet("a/0", isRunning)
			f.reconciles(3)
			f.Expect(f.expectRunning(v1alpha1.ReasonUnschedulable).Message).To(ContainSubstring("Insufficient cpu"))
			f.kubelet("a/0", hasFinished(0, ""))
			if test.unrecorded {
				f.rejectingRecords()
			}
			for range 4 {
				f.clock.Step(2 * writeInterval)
				f.reconciles(1)
			}
			f.Expect(f.record().Finished).To(HaveLen(map[bool]int{false: 1}[test.unrecorded]))
			round := roundOf(0, f.daemonSets()["job-0"])
			f.Expect(round.Nodes).To(HaveLen(map[bool]int{true: 1}[test.stays]))
			round = roundOf(1, f.daemonSets()["job-1"])
			f.Expect(round.Nodes).To(HaveLen(1))
		})
	}
}
