package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// Suspend ends what is not finished, and keeps the log of what is. Resumed, only what was not finished begins anew.
func TestSuspendAndResume(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		work func(*v1alpha1.GoopSpec)
		all  []string
	}{
		"everywhere":      {func(*v1alpha1.GoopSpec) {}, []string{"a/0", "b/0"}},
		"with a jobCount": {workers(3), []string{"a/0", "a/1", "b/0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newField(t, "a", "b")
			f.create(test.work, deadline(600))
			f.runs(test.all...)
			f.ends(0, "", "a/0")
			start := f.goop().Status.StartTime
			f.change(suspended)
			f.Expect(f.places()).To(Equal([]string{"a/0"}), "the log of what has finished stays")
			f.expect(v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
			f.expectNotRunning(v1alpha1.ReasonSuspended)
			f.expectCounts(int32(len(test.all)), 0, 1, 0)
			f.clock.Step(time.Hour)
			f.expectRest()
			f.join("c")
			f.settle()
			f.Expect(f.places()).To(Equal([]string{"a/0"}), "nothing begins while it is suspended")

			f.change(resumed)
			f.expect(v1alpha1.ConditionSuspended, metav1.ConditionFalse, v1alpha1.ReasonResumed)
			f.expectRunning(v1alpha1.ReasonWorking)
			f.Expect(f.goop().Status.StartTime.Time).To(BeTemporally(">=", start.Add(time.Hour)), "the deadline begins anew")
			for _, place := range f.places() {
				if place != "a/0" {
					f.ends(0, "", place)
				}
			}
			f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
			f.Expect(f.pods["a/0"]).To(Equal(1), "what has finished never runs again")
			f.expectRest()
		})
	}
}

// A Goop that is made suspended makes nothing, and waits.
func TestCreatedSuspended(t *testing.T) {
	t.Parallel()
	f := newField(t, "a")
	f.create(suspended)
	f.expect(v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
	f.Expect(f.daemonSets()).To(BeEmpty())
	f.Expect(f.shards()).To(BeEmpty())
	f.Expect(f.goop().Status.StartTime).To(BeNil())
	f.expectRest()
	f.change(resumed)
	f.Expect(f.places()).To(Equal([]string{"a/0"}))
}

// While workers are about to end it is not suspended yet. One that ends well meanwhile has done its work.
func TestSuspending(t *testing.T) {
	t.Parallel()
	f := newField(t, "a", "b")
	f.create(workers(2))
	f.runs("a/0", "b/0")
	goop := f.goop()
	goop.Spec.Suspend = true
	f.Expect(f.client.Update(f.ctx, goop)).To(Succeed())
	f.clock.Step(2 * writePace)
	f.passes(5)
	f.expectNotRunning(v1alpha1.ReasonSuspending)
	f.expect(v1alpha1.ConditionSuspended, metav1.ConditionFalse, v1alpha1.ReasonSuspending)
	f.Expect(f.client.Delete(f.ctx, f.pod("a/0"))).To(Succeed())
	f.kubelet("a/0", isOver(0, ""))
	f.passes(1)
	f.Expect(f.record().Succeeded).To(Equal(int32(1)), "recorded at once: its pod is about to go")
	f.settle()
	f.expect(v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
	f.change(resumed)
	f.Expect(f.places()).To(Equal([]string{"b/0"}))
	f.Expect(f.pods).To(Equal(map[string]int{"a/0": 1, "b/0": 2}))
}

// What has finished and is not recorded yet is recorded before anything is taken away.
func TestSuspendRecordsFirst(t *testing.T) {
	t.Parallel()
	f := newField(t, "a", "b")
	f.create(workers(2))
	f.runs("a/0", "b/0")
	f.kubelet("a/0", isOver(0, ""))
	goop := f.goop()
	goop.Spec.Suspend = true
	f.Expect(f.client.Update(f.ctx, goop)).To(Succeed())
	f.passes(1)
	f.Expect(f.record().Succeeded).To(Equal(int32(1)))
	f.Expect(f.record().Started.IsZero()).To(BeTrue())
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"a/0"}))
}
