package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

// deletedInTheForeground deletes the Goop while the operator is down, and these DaemonSets with their pods like the
// garbage collector.
func (f *goopTestEnv) deletedInTheForeground(daemonSets ...string) {
	f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
	for _, name := range daemonSets {
		f.Expect(f.client.Delete(f.ctx, f.daemonSets()[name])).To(Succeed())
	}
	f.simulateDaemonSets()
	f.use()
	f.clock.SetTime(time.Now())
}

// rejectingRecords replaces the reconciler by one whose writes of the record are rejected.
func (f *goopTestEnv) rejectingRecords() {
	f.use()
	rejected := func(obj client.Object) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, obj.GetName(), errors.New("a policy"))
	}
	f.reconciler.Client = interceptor.NewClient(f.watching(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if _, ok := obj.(*corev1.ConfigMap); ok {
				return rejected(obj)
			}
			return c.Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if _, ok := obj.(*corev1.ConfigMap); ok {
				return rejected(obj)
			}
			return c.Update(ctx, obj, opts...)
		},
	})
}

// The operator crashes after it has created a shard, before its uid is in the status. After a restart it does not trust
// that shard, and records in another one where work had begun.
func TestLostRoundsAndANewShard(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b", "c")
	f.create(cleanup)
	f.runs("a/0")
	f.fillShard()
	f.kubelet("b/0", isRunning)
	f.clock.Step(time.Minute)
	f.reconciler.Client = interceptor.NewClient(f.watching(), interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return errCrash
		},
	})
	_, err := f.reconcile()
	f.Expect(err).To(MatchError(errCrash))
	f.Expect(f.shards()).To(HaveLen(2))
	f.Expect(f.goop().Status.RecordUIDs).To(HaveLen(1))
	f.deletedInTheForeground("job-0")
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"a/cleanup", "b/cleanup", "c/cleanup"}))
}

// The write of the record is rejected when the operator observes the deletion, and succeeds later.
func TestLostRoundsAndARejectedRecord(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(cleanup)
	f.runs("a/0")
	f.kubelet("b/0", isRunning)
	f.deletedInTheForeground("job-0")
	f.rejectingRecords()
	f.reconciles(4)
	f.expectNotRunning(v1alpha1.ReasonCleaningUp)
	f.Expect(f.goop().Status.CleanupStartTime).NotTo(BeNil(), "the time for the cleanup has begun")
	f.use()
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"a/cleanup", "b/cleanup"}))
}

// The record was written a moment ago, and is written again at once, because the DaemonSets no longer exist.
func TestLostRoundsDoNotWaitForThePace(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(cleanup)
	f.runs("a/0")
	f.kubelet("b/0", isRunning)
	f.deletedInTheForeground("job-0")
	f.reconciler.throttle.wrote(f.key(), writesRecord, f.clock.Now())
	f.reconciles(1)
	f.Expect(f.record().Begun).To(HaveKey(f.node("b")))
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"a/cleanup", "b/cleanup"}))
}

// There was no DaemonSet because there was no eligible node. Nothing is lost, and nothing is cleaned up.
func TestNoRoundsAreNotLost(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(cleanup, workers(33))
	f.expectNotRunning(v1alpha1.ReasonTooManyRounds)
	f.Expect(f.daemonSets()).To(BeEmpty())
	f.recorded()
	f.delete()
	f.Expect(f.gone()).To(BeTrue())
	f.Expect(f.pods).To(BeEmpty())
	f.Expect(f.recorded()).To(Equal([]string{"Normal CleanedUp no worker had started: there was nothing to clean up"}))
}

// The API server rejects the DaemonSet, or the Goop does not own it. Nothing is lost, and the deletion does not wait.
func TestRoundsThatWereNeverCreatedAreNotLost(t *testing.T) {
	t.Parallel()
	for reason, spoil := range map[string]func(*goopTestEnv, *v1alpha1.GoopSpec){
		v1alpha1.ReasonApplyFailed: func(_ *goopTestEnv, s *v1alpha1.GoopSpec) {
			s.Resources = &corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
				Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
			}
		},
		v1alpha1.ReasonNameConflict: func(f *goopTestEnv, s *v1alpha1.GoopSpec) {
			notOwned := desiredRound(&v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: f.namespace, UID: "other"}, Spec: *s}, plan.Round{}, testImages)
			notOwned.OwnerReferences = nil
			f.Expect(f.client.Create(f.ctx, notOwned)).To(Succeed())
		},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a")
			f.create(cleanup, workers(1), func(s *v1alpha1.GoopSpec) { spoil(f, s) })
			f.expectNotRunning(reason)
			f.recorded()
			f.delete()
			f.Expect(f.gone()).To(BeTrue())
			f.Expect(f.recorded()).To(Equal([]string{"Normal CleanedUp no worker had started: there was nothing to clean up"}))
		})
	}
}

// The garbage collector has deleted one of two DaemonSets when the operator is restarted.
func TestSomeRoundsAreLost(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(cleanup, workers(3))
	f.Expect(f.places()).To(Equal([]string{"a/0", "a/1", "b/0"}))
	f.kubelet("b/0", isRunning)
	f.deletedInTheForeground("job-0")
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"a/cleanup", "b/cleanup"}))
}

// The operator is running, but the garbage collector is faster. The DaemonSets that are being deleted still have their
// nodes.
func TestRoundsThatAreBeingDeletedSayWhereTheyWere(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b", "c")
	f.create(cleanup, workers(1))
	f.Expect(f.places()).To(Equal([]string{"a/0"}))
	f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
	daemonSet := f.daemonSets()["job-0"]
	daemonSet.Finalizers = []string{metav1.FinalizerDeleteDependents}
	f.Expect(f.client.Update(f.ctx, daemonSet)).To(Succeed())
	f.Expect(f.client.Delete(f.ctx, daemonSet)).To(Succeed())
	f.removePod(f.pod("a/0"))
	f.clock.SetTime(time.Now())
	f.reconciles(2)
	f.Expect(f.record().Begun).To(Equal(map[string]bool{f.node("a"): true}))
}

// The operator crashes after it has written the end of the work, before it has recorded the other nodes where work had
// begun.
func TestRoundsAreLostAfterTheEnd(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(cleanup, failFast)
	f.kubelet("a/0", hasFinished(1, ""))
	for !f.goop().Ended() {
		f.clock.Step(time.Minute)
		f.reconciles(1)
	}
	f.kubelet("b/0", isRunning)
	f.deletedInTheForeground("job-0")
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"a/cleanup", "b/cleanup"}))
}

// The operator itself has deleted the DaemonSets after the TTL. The nodes where work had begun are known, and no other
// node is cleaned up.
func TestRoundsAreNotLostAtTheTTL(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]func(*v1alpha1.GoopSpec){"with a jobCount": workers(2), "everywhere": func(*v1alpha1.GoopSpec) {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a", "b")
			f.create(cleanup, failFast, spec, ttl(60))
			f.ends(1, "", "a/0")
			f.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonWorkersFailed)
			f.clock.Step(time.Hour)
			f.settle()
			f.Expect(f.daemonSets()).To(BeEmpty())
			f.join("c")
			f.delete()
			f.Expect(f.places()).To(Equal([]string{"a/cleanup", "b/cleanup"}))
		})
	}
}

// A policy rejects the line of the record that states the end of the work. The work ends nevertheless.
func TestWorkEndsThoughTheRecordIsRejected(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(cleanup, deadline(60))
	f.runs("a/0", "b/0")
	f.rejectingRecords()
	f.clock.Step(time.Hour)
	f.settle()
	f.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonDeadlineExceeded)
	f.Expect(f.places()).To(BeEmpty())
}

// The cleanup also runs where work had begun.
func TestCleanupRunsThoughTheRecordIsRejected(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(cleanup)
	f.runs("a/0", "b/0")
	f.rejectingRecords()
	f.delete()
	f.Expect(f.places()).To(Equal([]string{"a/cleanup", "b/cleanup"}))
}

// The record is lost while the cleanup runs. The cleanup continues on the nodes where it has not ended.
func TestRecordIsLostDuringTheCleanup(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b", "c")
	f.create(cleanup)
	f.runs("a/0", "b/0", "c/0")
	f.delete()
	f.ends(0, "", "a/cleanup")
	f.runs("b/cleanup")
	f.recorded()
	f.removeShard(&f.shards()[0])
	f.settle()
	f.Expect(f.gone()).To(BeFalse())
	f.Expect(f.places()).To(Equal([]string{"b/cleanup", "c/cleanup"}))
	f.ends(0, "", "b/cleanup", "c/cleanup")
	f.Expect(f.gone()).To(BeTrue())
	f.Expect(f.pods).To(And(HaveKeyWithValue("a/cleanup", 1), HaveKeyWithValue("b/cleanup", 1), HaveKeyWithValue("c/cleanup", 1)))
	f.Expect(f.recorded()).To(ContainElement(HavePrefix("Warning CleanupIncomplete cleanupCmd exited with 0 on 2 nodes, and")))
}

// A part of the record is lost while nothing can be recorded, and the other part lists one node. Every node is cleaned up
// nevertheless.
func TestPartOfTheRecordIsLostWhileNothingCanBeRecorded(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(cleanup)
	f.runs("a/0")
	f.fillShard()
	f.ends(0, "", "b/0")
	f.removePod(f.pod("b/0"))
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"a/0"}))
	f.Expect(f.shards()).To(HaveLen(2))
	f.removeShard(&f.shards()[1])
	f.rejectingRecords()
	f.settle()
	f.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonRecordLost)
	f.use()
	f.settle()
	f.Expect(f.places()).To(BeEmpty())
	f.delete()
	f.Expect(f.places()).To(Equal([]string{"a/cleanup", "b/cleanup"}))
}
