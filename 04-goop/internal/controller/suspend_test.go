package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// Suspend ends unfinished workers, and keeps the logs of finished ones. After a resume only unfinished work starts again.
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
			f := newGoopTestEnv(t, "a", "b")
			f.create(test.work, deadline(600))
			f.runs(test.all...)
			f.ends(0, "", "a/0")
			start := f.goop().Status.StartTime
			f.change(suspended)
			f.Expect(f.places()).To(Equal([]string{"a/0"}), "the log of the finished worker stays")
			f.expect(v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
			f.expectNotRunning(v1alpha1.ReasonSuspended)
			f.expectCounts(int32(len(test.all)), 0, 1, 0)
			f.clock.Step(time.Hour)
			f.expectSteadyState()
			f.join("c")
			f.settle()
			f.Expect(f.places()).To(Equal([]string{"a/0"}), "nothing begins while it is suspended")

			f.change(resumed)
			f.expect(v1alpha1.ConditionSuspended, metav1.ConditionFalse, v1alpha1.ReasonResumed)
			f.expectRunning(v1alpha1.ReasonWorking)
			f.Expect(f.goop().Status.StartTime.Time).To(BeTemporally(">=", start.Add(time.Hour)), "the deadline counts again from the start")
			for _, place := range f.places() {
				if place != "a/0" {
					f.ends(0, "", place)
				}
			}
			f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
			f.Expect(f.pods["a/0"]).To(Equal(1), "finished work never runs again")
			f.expectSteadyState()
		})
	}
}

// A Goop that is created suspended creates nothing, and waits.
func TestCreatedSuspended(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(suspended)
	f.expect(v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
	f.Expect(f.daemonSets()).To(BeEmpty())
	f.Expect(f.shards()).To(BeEmpty())
	f.Expect(f.goop().Status.StartTime).To(BeNil())
	f.expectSteadyState()
	f.change(resumed)
	f.Expect(f.places()).To(Equal([]string{"a/0"}))
}

// While workers are terminating the Goop is not Suspended yet. The result of a worker that ends with 0 meanwhile counts.
func TestSuspending(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(workers(2))
	f.runs("a/0", "b/0")
	goop := f.goop()
	goop.Spec.Suspend = true
	f.Expect(f.client.Update(f.ctx, goop)).To(Succeed())
	f.clock.Step(2 * writeInterval)
	f.reconciles(5)
	f.expectNotRunning(v1alpha1.ReasonSuspending)
	f.expect(v1alpha1.ConditionSuspended, metav1.ConditionFalse, v1alpha1.ReasonSuspending)
	f.Expect(f.client.Delete(f.ctx, f.pod("a/0"))).To(Succeed())
	f.kubelet("a/0", hasFinished(0, ""))
	f.reconciles(1)
	f.Expect(f.record().Succeeded).To(Equal(int32(1)), "recorded at once, because its pod is terminating")
	f.settle()
	f.expect(v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
	f.change(resumed)
	f.Expect(f.places()).To(Equal([]string{"b/0"}))
	f.Expect(f.pods).To(Equal(map[string]int{"a/0": 1, "b/0": 2}))
}

// Unrecorded results are recorded before anything is deleted.
func TestSuspendRecordsFirst(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(workers(2))
	f.runs("a/0", "b/0")
	f.kubelet("a/0", hasFinished(0, ""))
	goop := f.goop()
	goop.Spec.Suspend = true
	f.Expect(f.client.Update(f.ctx, goop)).To(Succeed())
	f.reconciles(1)
	f.Expect(f.record().Succeeded).To(Equal(int32(1)))
	f.Expect(f.record().Started.IsZero()).To(BeTrue())
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"a/0"}))
}

// suspend sets spec.suspend, and leaves everything else to the test.
func (f *goopTestEnv) suspend() {
	goop := f.goop()
	goop.Spec.Suspend = true
	f.Expect(f.client.Update(f.ctx, goop)).To(Succeed())
	f.clock.Step(2 * writeInterval)
}

// No pod exists, but the DaemonSet controller has not observed that its DaemonSet has lost its nodes: it still creates a
// pod, and deletes it in its next sync.
func TestSuspendedIsNotReportedBeforeItIsObserved(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.begin()
	before := f.daemonSets()["job-0"]
	f.suspend()
	f.reconciles(5)
	f.Expect(f.expect(v1alpha1.ConditionSuspended, metav1.ConditionFalse, v1alpha1.ReasonSuspending).Message).To(ContainSubstring("DaemonSet controller"))
	f.expectNotRunning(v1alpha1.ReasonSuspending)
	f.makePod(before, f.node("a"))
	f.settle()
	f.expect(v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
	f.Expect(f.podList()).To(BeEmpty())
	f.expectSteadyState()
}

// The cache has the status of the DaemonSet before it has a pod that was created earlier.
func TestSuspendedIsNotReportedForAPodThatTheCacheLacks(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.begin()
	f.makePod(f.daemonSets()["job-0"], f.node("a"))
	f.withoutPods()
	f.suspend()
	for range 8 {
		f.attempts(1)
		f.observeDaemonSets(f.daemonSets())
	}
	f.Expect(conditionOf(f.goop().Status.Conditions, v1alpha1.ConditionSuspended).Status).NotTo(Equal(metav1.ConditionTrue))
	f.use()
	f.settle()
	f.expect(v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
}

// No pod exists yet, and a policy keeps the DaemonSet from losing its nodes: a pod may be created at any moment.
func TestSuspendedIsNotReportedIfTheWorkCannotEnd(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.begin()
	f.observeDaemonSets(f.daemonSets())
	f.reconciler.Client = interceptor.NewClient(f.watching(), interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
			return apierrors.NewForbidden(appsv1.Resource("daemonsets"), object.GetName(), errors.New("a policy"))
		},
	})
	f.suspend()
	f.reconciles(5)
	f.expect(v1alpha1.ConditionSuspended, metav1.ConditionFalse, v1alpha1.ReasonSuspending)
	f.expectNotRunning(v1alpha1.ReasonApplyFailed)
}
