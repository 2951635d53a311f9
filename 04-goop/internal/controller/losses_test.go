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

// A node leaves. What was recorded of it stays done, what was not runs elsewhere; nothing else moves.
func TestNodeLeaves(t *testing.T) {
	t.Parallel()
	f := newField(t, "a", "b", "c")
	f.create(workers(6))
	f.runs("a/0", "b/0", "c/0")
	f.ends(0, "", "c/0")
	f.leave("c")
	f.Expect(f.places()).To(Equal([]string{"a/0", "a/1", "a/2", "b/0", "b/1"}))
	f.expectRest()
	f.ends(0, "", f.places()...)
	f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	f.expectCounts(6, 0, 6, 0)
	f.Expect(f.pods).To(Equal(map[string]int{"a/0": 1, "a/1": 1, "a/2": 1, "b/0": 1, "b/1": 1, "c/0": 1, "c/1": 1}))
}

// A node joins. With a jobCount nothing moves; without one it has its worker, and needs no write for it.
func TestNodeJoins(t *testing.T) {
	t.Parallel()
	t.Run("with a jobCount", func(t *testing.T) {
		t.Parallel()
		f := newField(t, "a")
		f.create(workers(2))
		f.join("b")
		f.expectRest()
		f.Expect(f.places()).To(Equal([]string{"a/0", "a/1"}))
	})
	t.Run("everywhere", func(t *testing.T) {
		t.Parallel()
		f := newField(t, "a")
		f.create()
		f.ends(0, "", "a/0")
		f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	})
	t.Run("everywhere, while others are at work", func(t *testing.T) {
		t.Parallel()
		f := newField(t, "a")
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

// A node leaves when its worker has finished, and comes back: the work is not done again.
func TestNodeComesBack(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]func(*v1alpha1.GoopSpec){"with a jobCount": workers(2), "everywhere": func(*v1alpha1.GoopSpec) {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newField(t, "a", "b")
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

// Somebody deletes the pod of a worker that has finished: no other comes. Of one that has not, another does.
func TestPodIsDeleted(t *testing.T) {
	t.Parallel()
	f := newField(t, "a", "b")
	f.create()
	f.runs("a/0", "b/0")
	f.ends(0, "", "a/0")
	f.Expect(f.client.Delete(f.ctx, f.pod("a/0"))).To(Succeed())
	f.passes(1)
	f.Expect(f.requests.writes["PATCH daemonsets/job-0"]).To(Equal(1), "before the pod is gone")
	f.removePod(f.pod("b/0"))
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"b/0"}))
	f.Expect(f.pods).To(Equal(map[string]int{"a/0": 1, "b/0": 2}))
	f.ends(0, "", "b/0")
	f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
}

// The pod was gone before anybody could keep another from coming: that one is ended.
func TestSecondPodOfFinishedWork(t *testing.T) {
	t.Parallel()
	f := newField(t, "a", "b")
	f.create()
	f.ends(0, "", "a/0")
	f.removePod(f.pod("a/0"))
	f.playDaemonSets()
	f.kubelet("a/0", isRunning)
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"b/0"}))
}

// Where no node is eligible the Goop waits, and says so. It heals when one comes.
func TestNoEligibleNodes(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]func(*v1alpha1.GoopSpec){"with a jobCount": workers(2), "everywhere": func(*v1alpha1.GoopSpec) {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			f.join("a", corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoSchedule})
			f.create(work)
			f.Expect(f.expectNotRunning(v1alpha1.ReasonNoEligibleNodes).Message).To(ContainSubstring("spec.nodeSelector"))
			f.Expect(f.places()).To(BeEmpty())
			f.Expect(f.recorded()).To(HaveLen(1))
			f.expectRest()
			f.taint("a")
			f.settle()
			f.expectRunning(v1alpha1.ReasonWorking)
			f.Expect(f.places()).NotTo(BeEmpty())
		})
	}
}

func TestTooManyRounds(t *testing.T) {
	t.Parallel()
	f := newField(t, "a")
	f.create(workers(33))
	f.Expect(f.expectNotRunning(v1alpha1.ReasonTooManyRounds).Message).To(ContainSubstring("1 of 33 workers"))
	f.Expect(f.daemonSets()).To(BeEmpty())
	f.expectCounts(33, 0, 0, 0)
	f.expectRest()
	f.join("b")
	f.settle()
	f.expectRunning(v1alpha1.ReasonWorking)
	f.Expect(f.places()).To(HaveLen(33))
	f.Expect(f.daemonSets()).To(HaveLen(17))
}

// A node is tainted. Work that may stay stays; what has to go runs elsewhere.
func TestNodeIsTainted(t *testing.T) {
	t.Parallel()
	f := newField(t, "a", "b")
	f.create(workers(2))
	f.runs("a/0", "b/0")
	f.taint("a", corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule},
		corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute})
	f.expectRest()
	f.Expect(f.places()).To(Equal([]string{"a/0", "b/0"}), "cordoned, not ready")
	f.taint("a", corev1.Taint{Key: "gone", Effect: corev1.TaintEffectNoSchedule})
	f.passes(3)
	f.Expect(f.daemonSets()).To(HaveLen(1), "work that has begun may stay")
	f.taint("a", corev1.Taint{Key: "gone", Effect: corev1.TaintEffectNoExecute})
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"b/0", "b/1"}))
}

// Somebody deletes a DaemonSet, or changes where it has pods: it is as planned again.
func TestDaemonSetIsPutRight(t *testing.T) {
	t.Parallel()
	f := newField(t, "a", "b")
	f.create(workers(3))
	f.ends(0, "", "a/0")
	f.Expect(f.client.Delete(f.ctx, f.daemonSets()["job-0"], client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	f.settle()
	f.Expect(f.places()).NotTo(ContainElement("a/0"), "what has finished never runs again")
	f.Expect(f.places()).To(HaveLen(2))

	daemonSet := f.daemonSets()["job-1"]
	daemonSet.Spec.Template.Spec.Affinity = nil
	daemonSet.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType}
	f.Expect(f.client.Update(f.ctx, daemonSet)).To(Succeed())
	f.settle()
	f.Expect(f.daemonSets()["job-1"].Spec.Template.Spec.Affinity).NotTo(BeNil())
	f.Expect(f.daemonSets()["job-1"].Spec.UpdateStrategy).To(Equal(appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}))
	f.expectRest()

	daemonSet = f.daemonSets()["job-1"]
	daemonSet.Labels = nil
	f.Expect(f.client.Update(f.ctx, daemonSet)).To(Succeed())
	f.settle()
	f.Expect(f.daemonSets()["job-1"].Labels).To(HaveKeyWithValue(v1alpha1.LabelGoop, "job"))
	f.expectRest()
	f.ends(0, "", f.places()...)
	f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
}

// The DaemonSet controller makes no pod, because of a quota, say: no event tells that.
func TestNoPods(t *testing.T) {
	t.Parallel()
	f := newField(t, "a")
	goop := &v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "job"}, Spec: f.spec(workers(1))}
	f.Expect(f.client.Create(f.ctx, goop)).To(Succeed())
	f.passes(5)
	f.expectRunning(v1alpha1.ReasonWorking)
	result, err := f.reconcile()
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(result.RequeueAfter).To(Equal(podsPatience))
	f.clock.Step(podsPatience)
	f.passes(1)
	f.Expect(f.expectNotRunning(v1alpha1.ReasonPodsNotCreated).Message).To(ContainSubstring("daemonset/job-0"))

	f.settle()
	f.runs("a/0")
	f.expectRunning(v1alpha1.ReasonWorking)
	f.ends(0, "", "a/0")
	f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
}
