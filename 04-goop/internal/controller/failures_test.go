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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// failing replaces the reconciler by one whose creations and patches of DaemonSets fail with the function's error.
func (f *goopTestEnv) failing(fail func() error) {
	f.use()
	f.reconciler.Client = interceptor.NewClient(f.watching(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if _, ok := obj.(*appsv1.DaemonSet); ok {
				return fail()
			}
			return c.Create(ctx, obj, opts...)
		},
	})
}

// A Conflict means that the cache is stale. The status is not computed from it, unless the Conflict lasts.
func TestConflictThatLastsIsReported(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.failing(func() error {
		return apierrors.NewConflict(appsv1.Resource("daemonsets"), "job-0", errors.New("the object has been modified"))
	})
	f.Expect(f.client.Create(f.ctx, &v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: f.namespace}, Spec: f.spec()})).To(Succeed())
	f.Eventually(func() bool {
		_, err := f.reconcile()
		return isStale(err)
	}).Should(BeTrue())
	f.expect(v1alpha1.ConditionRunning, metav1.ConditionTrue, v1alpha1.ReasonWorking)

	f.clock.Step(staleTimeout)
	for range 2 {
		_, err := f.reconcile()
		f.Expect(err).To(HaveOccurred(), "it is retried")
		f.Expect(f.expectNotRunning(v1alpha1.ReasonAPIError).Message).To(ContainSubstring("the object has been modified"))
	}
	f.use()
	f.settle()
	f.runs("a/0")
}

// An admission webhook with failurePolicy Fail is down. The status reports that for the current generation, once and not
// for each retry, and so does one Event. This also holds while the Goop is being deleted.
func TestTransientErrorIsReportedOnce(t *testing.T) {
	t.Parallel()
	for name, deleted := range map[string]bool{"alive": false, "being deleted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a")
			if deleted {
				f.create(cleanup, func(s *v1alpha1.GoopSpec) { s.CleanupTimeoutSeconds = 3600 })
				f.runs("a/0")
				f.delete()
				f.Expect(f.client.Delete(f.ctx, f.daemonSets()["job-cleanup"])).To(Succeed())
				f.simulateDaemonSets()
			} else {
				f.create(suspended)
				goop := f.goop()
				goop.Spec.Suspend = false
				f.Expect(f.client.Update(f.ctx, goop)).To(Succeed())
			}
			f.recorded()
			ports := []string{"40001", "40002", "40003"}
			attempts := 0
			f.failing(func() error {
				attempts++
				return apierrors.NewInternalError(errors.New("failed calling webhook: dial tcp 10.0.0.1:" + ports[attempts%3] + ": connection refused after " + ports[attempts%3] + "ms"))
			})
			for range 6 {
				f.clock.Step(time.Minute)
				_, _ = f.reconcile()
			}
			message := f.expectNotRunning(v1alpha1.ReasonAPIError).Message
			f.Expect(message).To(And(ContainSubstring("failed calling webhook"), Not(ContainSubstring("4000"))))
			f.Expect(attempts).To(BeNumerically(">", 2))
			f.Expect(f.recorded()).To(ContainElement(HavePrefix("Warning APIError")))
			before := f.requests.written()
			for range 3 {
				f.clock.Step(time.Minute)
				_, err := f.reconcile()
				f.Expect(err).To(HaveOccurred(), "the queue retries it with back-off")
			}
			f.Expect(f.requests.written()).To(Equal(before), "not again for each retry")
			f.Expect(f.recorded()).To(BeEmpty())
		})
	}
}

// A leader is paused before it deletes a DaemonSet, and the DaemonSet gets another owner meanwhile. It is not deleted.
func TestLateDeletion(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create()
	stale := f.daemonSets()["job-0"]
	f.orphan("job-0")
	f.Expect(isStale(deleteDependent(f.ctx, f.reconciler.Client, stale))).To(BeTrue())
	f.Expect(f.daemonSets()).To(HaveKey("job-0"))
}

// A leader is paused before a patch, and its successor continues meanwhile. The late patch changes nothing.
func TestLatePatch(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(workers(1))
	stale := f.daemonSets()["job-0"]
	f.ends(0, "", "a/0")
	before := f.daemonSets()["job-0"]
	before.Annotations = map[string]string{"since": "then"}
	f.Expect(f.client.Update(f.ctx, before)).To(Succeed())
	round := roundOf(0, stale)
	round.Nodes = append(round.Nodes, f.node("b"))
	_, err := f.reconciler.place(f.ctx, f.goop(), stale, round, stale.Labels)
	f.Expect(isStale(err)).To(BeTrue(), "%v", err)
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"a/0"}))
}

// Results from before the deadline are recorded before the end, even if the throttle does not allow a write of the record
// yet.
func TestDeadlineRecordsFirst(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(workers(2), deadline(60))
	f.ends(0, "", "a/0")
	f.runs("b/0")
	f.clock.SetTime(f.goop().Status.StartTime.Add(60 * time.Second))
	f.reconciler.throttle.wrote(f.key(), writesRecord, f.clock.Now())
	f.kubelet("b/0", hasFinished(0, ""))
	f.settle()
	f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	f.expectCounts(2, 0, 2, 0)
}

// FailFast ends a Goop that is being suspended. It must not stay Suspending.
func TestEndWhileSuspending(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(failFast, workers(2))
	f.runs("a/0", "b/0")
	goop := f.goop()
	goop.Spec.Suspend = true
	f.Expect(f.client.Update(f.ctx, goop)).To(Succeed())
	f.clock.Step(2 * writeInterval)
	f.reconciles(5)
	f.expect(v1alpha1.ConditionSuspended, metav1.ConditionFalse, v1alpha1.ReasonSuspending)
	f.kubelet("a/0", hasFinished(3, ""))
	f.clock.Step(2 * writeInterval)
	f.reconciles(4)
	f.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonWorkersFailed)
	f.expect(v1alpha1.ConditionSuspended, metav1.ConditionFalse, v1alpha1.ReasonFinished)
}

// The outcome of the cleanup stays in the status while the release of the record fails, because the objects that it was
// computed from may no longer exist.
func TestOutcomeStaysWhileTheReleaseFails(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(cleanup)
	f.runs("a/0")
	f.delete()
	f.recorded()
	f.kubelet("a/cleanup", hasFinished(0, ""))
	f.reconciles(1)
	f.expectNotRunning(v1alpha1.ReasonCleanedUp)
	f.use()
	f.reconciler.Client = interceptor.NewClient(f.watching(), interceptor.Funcs{
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
			return apierrors.NewInternalError(errors.New("no"))
		},
	})
	for range 3 {
		f.clock.Step(time.Minute)
		_, err := f.reconcile()
		f.Expect(err).To(HaveOccurred())
		f.expectNotRunning(v1alpha1.ReasonCleanedUp)
	}
	f.use()
	f.settle()
	f.Expect(f.gone()).To(BeTrue())
	f.Expect(f.recorded()).To(HaveExactElements(HavePrefix("Normal CleanedUp")))
}

// The API server rejects the pod template of all DaemonSets. The first rejection is reported, and the others are not
// tried. They are retried one by one when the queue's growing back-off has expired.
func TestRejectedForGood(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	attempts := 0
	f.failing(func() error {
		attempts++
		return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "daemonsets"}, "job-0", errors.New("no host paths here"))
	})
	goop := &v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: f.namespace}, Spec: f.spec(workers(8))}
	f.Expect(f.client.Create(f.ctx, goop)).To(Succeed())
	f.reconciles(4)
	f.Expect(f.expectNotRunning(v1alpha1.ReasonApplyFailed).Message).To(ContainSubstring("no host paths here"))
	attempts = 0
	_, err := f.reconcile()
	f.Expect(isRejected(err)).To(BeTrue(), "the queue retries it with back-off: %v", err)
	f.Expect(attempts).To(Equal(1))
	f.use()
	f.settle()
	f.Expect(f.places()).To(HaveLen(8))
}

// The record cannot be written, and the deadline does not wait for it.
func TestDeadlineDoesNotWaitForTheRecord(t *testing.T) {
	t.Parallel()
	for name, exitCode := range map[string]*int32{"nothing to be recorded": nil, "a result to be recorded": new(int32(0))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a", "b")
			f.create(deadline(60))
			f.runs("a/0", "b/0")
			shard := f.shards()[0]
			shard.Immutable = new(true)
			f.Expect(f.client.Update(f.ctx, &shard)).To(Succeed())
			if exitCode != nil {
				f.kubelet("a/0", hasFinished(*exitCode, ""))
			}
			f.clock.Step(time.Hour)
			f.settle()
			f.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonDeadlineExceeded)
			f.Expect(f.places()).NotTo(ContainElement("b/0"))
		})
	}
}

// A quota, or the namespace's Pod Security level, forbids the pods of the cleanup. The status reports that.
func TestPodsOfTheCleanupAreNotCreated(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(cleanup)
	f.runs("a/0")
	f.delete()
	f.removePod(f.pod("a/cleanup"))
	f.recorded()
	for range 4 {
		_, err := f.reconcile()
		f.Expect(err).NotTo(HaveOccurred())
		f.clock.Step(podsTimeout)
	}
	f.Expect(f.expectNotRunning(v1alpha1.ReasonPodsNotCreated).Message).To(ContainSubstring("daemonset/job-cleanup"))
	f.Expect(f.recorded()).To(HaveExactElements(HavePrefix("Warning PodsNotCreated")))
	f.settle()
	f.expectNotRunning(v1alpha1.ReasonCleaningUp)
	f.ends(0, "", "a/cleanup")
	f.Expect(f.gone()).To(BeTrue())
}
