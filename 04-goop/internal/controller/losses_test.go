package controller

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// A node is deleted. Its recorded results count, unfinished work runs elsewhere, and nothing else moves.
func TestNodeLeaves(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b", "c")
	f.create(workers(6))
	f.runs("a/0", "b/0", "c/0")
	f.ends(0, "", "c/0")
	f.leave("c")
	f.Expect(f.places()).To(Equal([]string{"a/0", "a/1", "a/2", "b/0", "b/1"}))
	f.expectSteadyState()
	f.ends(0, "", f.places()...)
	f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	f.expectCounts(6, 0, 6, 0)
	f.Expect(f.pods).To(Equal(map[string]int{"a/0": 1, "a/1": 1, "a/2": 1, "b/0": 1, "b/1": 1, "c/0": 1, "c/1": 1}))
}

// A node joins. With a jobCount nothing moves. Without one it gets a worker, which needs no write of the operator.
func TestNodeJoins(t *testing.T) {
	t.Parallel()
	t.Run("with a jobCount", func(t *testing.T) {
		t.Parallel()
		f := newGoopTestEnv(t, "a")
		f.create(workers(2))
		f.join("b")
		f.expectSteadyState()
		f.Expect(f.places()).To(Equal([]string{"a/0", "a/1"}))
	})
	t.Run("everywhere", func(t *testing.T) {
		t.Parallel()
		f := newGoopTestEnv(t, "a")
		f.create()
		f.ends(0, "", "a/0")
		f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	})
	t.Run("everywhere, while others are at work", func(t *testing.T) {
		t.Parallel()
		f := newGoopTestEnv(t, "a")
		f.create()
		f.join("b")
		f.settle()
		f.Expect(f.places()).To(Equal([]string{"a/0", "b/0"}))
		f.expectCounts(2, 0, 0, 0)
		f.Expect(f.requests.writes["PATCH daemonsets/job-0"]).To(BeZero())
		f.ends(0, "", "a/0")
		f.expectRunning(v1alpha1.ReasonWorking)
		f.ends(0, "", "b/0")
		f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	})
}

// A node is deleted after its worker has finished, and one joins under its name. Nodes are identified by name, so the
// work does not run again.
func TestNodeComesBack(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]func(*v1alpha1.GoopSpec){"with a jobCount": workers(2), "everywhere": func(*v1alpha1.GoopSpec) {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a", "b")
			f.create(work)
			f.ends(0, "", "a/0")
			f.leave("a")
			f.join("a")
			f.settle()
			f.Expect(f.places()).To(Equal([]string{"b/0"}))
			f.Expect(f.pods["a/0"]).To(Equal(1))
			f.ends(0, "", "b/0")
			f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
			f.expectCounts(2, 0, 2, 0)
		})
	}
}

// A user deletes the pod of a worker. If the worker has finished, no other pod is created; if not, one is.
func TestPodIsDeleted(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create()
	f.runs("a/0", "b/0")
	f.ends(0, "", "a/0")
	f.Expect(f.client.Delete(f.ctx, f.pod("a/0"))).To(Succeed())
	f.reconciles(1)
	f.Expect(f.requests.writes["PATCH daemonsets/job-0"]).To(Equal(1), "before the pod was deleted")
	f.removePod(f.pod("b/0"))
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"b/0"}))
	f.Expect(f.pods).To(Equal(map[string]int{"a/0": 1, "b/0": 2}))
	f.ends(0, "", "b/0")
	f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
}

// The DaemonSet controller replaced the pod of a finished worker before the operator could prevent it. The new pod is
// ended.
func TestSecondPodOfFinishedWork(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create()
	f.ends(0, "", "a/0")
	f.removePod(f.pod("a/0"))
	f.simulateDaemonSets()
	f.kubelet("a/0", isRunning)
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"b/0"}))
}

// After the end, while the operator is down, the pod of a finished worker is evicted. The DaemonSet controller creates
// another one, and the work starts again. The operator ends it after its restart. The recorded result does not change.
func TestSecondPodWhileTheOperatorIsDown(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]func(*v1alpha1.GoopSpec){"with a jobCount": workers(2), "everywhere": func(*v1alpha1.GoopSpec) {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a", "b")
			f.create(work)
			f.ends(0, "", "a/0", "b/0")
			status := f.goop().Status
			f.recorded()
			f.use()
			f.removePod(f.pod("a/0"))
			f.simulateDaemonSets()
			f.kubelet("a/0", isRunning)
			f.settle()
			f.Expect(f.places()).To(Equal([]string{"b/0"}), "the other worker keeps its log")
			f.Expect(f.goop().Status).To(Equal(status))
			f.Expect(f.recorded()).To(BeEmpty())
			f.expectSteadyState()
		})
	}
}

// While no node is eligible the Goop waits, and reports that. It continues when an eligible node joins.
func TestNoEligibleNodes(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]func(*v1alpha1.GoopSpec){"with a jobCount": workers(2), "everywhere": func(*v1alpha1.GoopSpec) {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t)
			f.join("a", corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoSchedule})
			f.create(work)
			f.Expect(f.expectNotRunning(v1alpha1.ReasonNoEligibleNodes).Message).To(ContainSubstring("spec.nodeSelector"))
			f.Expect(f.places()).To(BeEmpty())
			f.Expect(f.recorded()).To(HaveLen(1))
			f.expectSteadyState()
			f.taint("a")
			f.settle()
			f.expectRunning(v1alpha1.ReasonWorking)
			f.Expect(f.places()).NotTo(BeEmpty())
		})
	}
}

func TestTooManyRounds(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(workers(33))
	f.Expect(f.expectNotRunning(v1alpha1.ReasonTooManyRounds).Message).To(ContainSubstring("1 of 33 workers"))
	f.Expect(f.daemonSets()).To(BeEmpty())
	f.expectCounts(33, 0, 0, 0)
	f.expectSteadyState()
	f.join("b")
	f.settle()
	f.expectRunning(v1alpha1.ReasonWorking)
	f.Expect(f.places()).To(HaveLen(33))
	f.Expect(f.daemonSets()).To(HaveLen(17))
}

// A node is tainted. Work that may stay stays; other work runs elsewhere.
func TestNodeIsTainted(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(workers(2))
	f.runs("a/0", "b/0")
	f.taint("a", corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule},
		corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute})
	f.expectSteadyState()
	f.Expect(f.places()).To(Equal([]string{"a/0", "b/0"}), "cordoned, not ready")
	f.taint("a", corev1.Taint{Key: "gone", Effect: corev1.TaintEffectNoSchedule})
	f.reconciles(3)
	f.Expect(f.daemonSets()).To(HaveLen(1), "work that has begun may stay")
	f.taint("a", corev1.Taint{Key: "gone", Effect: corev1.TaintEffectNoExecute})
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"b/0", "b/1"}))
}

// A user deletes a DaemonSet, or changes its affinity. The operator repairs the drift, and with it labels and strategy.
func TestDaemonSetDriftIsRepaired(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(workers(3))
	f.ends(0, "", "a/0")
	f.Expect(f.client.Delete(f.ctx, f.daemonSets()["job-0"], client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	f.settle()
	f.Expect(f.places()).NotTo(ContainElement("a/0"), "finished work never runs again")
	f.Expect(f.places()).To(HaveLen(2))

	daemonSet := f.daemonSets()["job-1"]
	daemonSet.Labels, daemonSet.Spec.Template.Spec.Affinity = nil, nil
	daemonSet.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType}
	f.Expect(f.client.Update(f.ctx, daemonSet)).To(Succeed())
	f.settle()
	f.Expect(f.daemonSets()["job-1"].Spec.Template.Spec.Affinity).NotTo(BeNil())
	f.Expect(f.daemonSets()["job-1"].Spec.UpdateStrategy).To(Equal(appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}))
	f.Expect(f.daemonSets()["job-1"].Labels).To(HaveKeyWithValue(v1alpha1.LabelGoop, "job"))
	f.expectSteadyState()
	f.ends(0, "", f.places()...)
	f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
}

// The DaemonSet controller creates no pod, for example because of a quota. No event reports that.
func TestNoPods(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	goop := &v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "job"}, Spec: f.spec(workers(1))}
	f.Expect(f.client.Create(f.ctx, goop)).To(Succeed())
	f.reconciles(5)
	f.expectRunning(v1alpha1.ReasonWorking)
	result, err := f.reconcile()
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(result.RequeueAfter).To(Equal(podsTimeout))
	f.clock.Step(podsTimeout)
	f.reconciles(1)
	f.Expect(f.expectNotRunning(v1alpha1.ReasonPodsNotCreated).Message).To(ContainSubstring("daemonset/job-0"))

	f.settle()
	f.runs("a/0")
	f.expectRunning(v1alpha1.ReasonWorking)
	f.ends(0, "", "a/0")
	f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
}

// A user deletes a DaemonSet, whose pods exist for some more seconds. Another one is created when they no longer exist,
// so that no node has two copies of a worker. Results of the old pods count.
func TestDaemonSetIsCreatedAfterThePodsOfAnother(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(workers(2))
	f.runs("a/0", "b/0")
	f.Expect(f.client.Delete(f.ctx, f.daemonSets()["job-0"])).To(Succeed())
	f.clock.Step(2 * writeInterval)
	f.reconciles(3)
	f.Expect(f.daemonSets()).To(BeEmpty())
	f.expectRunning(v1alpha1.ReasonWorking)
	f.expectCounts(2, 2, 0, 0)
	f.kubelet("a/0", hasFinished(0, ""))
	f.clock.Step(2 * writeInterval)
	f.reconciles(3)
	f.Expect(f.daemonSets()).To(BeEmpty())
	f.removePod(f.pod("a/0"))
	f.taint("b", corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute})
	f.reconciles(3)
	f.Expect(f.daemonSets()).To(HaveLen(1), "it does not wait for an unreachable node")
	f.settle()
	f.Expect(f.pods).To(Equal(map[string]int{"a/0": 1, "b/0": 1, "a/1": 1}), "the work of b runs on a reachable node")
	f.ends(0, "", "a/1")
	f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
}

// With --cascade=orphan the pods of a DaemonSet stay without an owner, and the next DaemonSet adopts them.
func TestDaemonSetIsDeletedWithoutItsPods(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create()
	f.runs("a/0")
	f.Expect(f.client.Delete(f.ctx, f.daemonSets()["job-0"])).To(Succeed())
	pod := f.pod("a/0")
	pod.OwnerReferences = nil
	f.Expect(f.client.Update(f.ctx, pod)).To(Succeed())
	f.reconciles(1)
	f.Expect(f.daemonSets()).To(HaveLen(1))
}
