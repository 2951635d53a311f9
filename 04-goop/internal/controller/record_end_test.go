package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// The work fails while workers are about to begin, and the last shard has no room for the names of their nodes. A new
// shard is also trusted after the end. No work is left, none begins, and the cleanup runs on all these nodes.
func TestRecordGrowsAfterTheEnd(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b", "c")
	f.create(cleanup, failFast)
	f.runs("a/0")
	f.kubelet("a/0", hasFinished(1, ""))
	for !f.goop().Ended() {
		f.clock.Step(time.Minute)
		_, err := f.reconcile()
		f.Expect(err).NotTo(HaveOccurred())
	}
	f.fillShard()
	f.settle()
	f.expect(v1alpha1.ConditionFailed, "True", v1alpha1.ReasonWorkersFailed)
	f.Expect(f.places()).NotTo(ContainElements("b/0", "c/0"))
	f.join("d")
	f.settle()
	f.Expect(f.places()).NotTo(ContainElement("d/0"))
	f.delete()
	f.Expect(f.places()).To(Equal([]string{"a/cleanup", "b/cleanup", "c/cleanup"}))
	f.ends(0, "", "a/cleanup", "b/cleanup", "c/cleanup")
	f.Expect(f.gone()).To(BeTrue())
	f.expectReleased()
}

// A user deletes the record after the end. The cleanup runs where pods of the work exist or may have existed.
func TestRecordIsLostAfterTheEnd(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(cleanup)
	f.runs("a/0", "b/0")
	f.ends(0, "", "a/0", "b/0")
	f.expect(v1alpha1.ConditionComplete, "True", v1alpha1.ReasonSucceeded)
	f.removeShard(&f.shards()[0])
	f.settle()
	f.delete()
	f.Expect(f.places()).To(Equal([]string{"a/cleanup", "b/cleanup"}))
	f.ends(0, "", "a/cleanup", "b/cleanup")
	f.Expect(f.gone()).To(BeTrue())
	f.expectReleased()
}

// Work that begins and ends while the record is throttled is recorded before its DaemonSet is deleted. A crash in
// between would leave its node without a cleanup.
func TestBegunWorkIsRecordedBeforeItIsDeleted(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(cleanup)
	f.runs("a/0")
	f.kubelet("b/0", hasFinished(0, ""))
	f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
	f.clock.SetTime(time.Now())
	f.reconciler.throttle.wrote(f.key(), writesRecord, f.clock.Now())
	f.endsWork()
	f.Expect(f.record().Begun).To(HaveLen(2))
}

// A former leader does not know yet that the Goop is being deleted. It does not record a start after its successor has
// recorded the end.
func TestFormerLeaderDoesNotStartTheWorkAgain(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(cleanup, workers(1))
	f.runs("a/0")
	before := f.goop()
	f.Expect(f.client.Delete(f.ctx, before)).To(Succeed())
	f.clock.SetTime(time.Now())
	f.endsWork()
	f.freezeCache(before)
	_, err := f.reconcile()
	f.Expect(isStale(err)).To(BeTrue(), "%v", err)
	f.use()
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"a/cleanup"}))
}

// A user clears the status, so that the record is not trusted. The outcome is not CleanedUp, because nothing was cleaned
// up.
func TestUnknownWorkIsNotCalledCleanedUp(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(cleanup)
	f.runs("a/0")
	goop := f.goop()
	goop.Status = v1alpha1.GoopStatus{}
	f.Expect(f.client.Status().Update(f.ctx, goop)).To(Succeed())
	f.recorded()
	f.delete()
	f.clock.Step(time.Hour)
	f.settle()
	f.Expect(f.gone()).To(BeTrue())
	f.Expect(f.recorded()).To(ContainElement(HavePrefix("Warning CleanupIncomplete cleanupCmd has not run")))
}

// The record is not throttled either if the pod is being deleted and no other will be created: otherwise its node would have
// no cleanup.
func TestBegunWorkIsRecordedBeforeItsPodGoes(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(cleanup)
	f.runs("a/0")
	f.reconciler.throttle.wrote(f.key(), writesRecord, f.clock.Now())
	f.kubelet("b/0", isRunning)
	f.taint("b", corev1.Taint{Key: "gone", Effect: corev1.TaintEffectNoExecute})
	f.Expect(f.client.Delete(f.ctx, f.pod("b/0"))).To(Succeed())
	f.Expect(f.pod("b/0").DeletionTimestamp).NotTo(BeNil(), "its kubelet has not ended it yet")
	f.reconciles(1)
	f.removePod(f.pod("b/0"))
	f.settle()
	f.delete()
	f.Expect(f.places()).To(Equal([]string{"a/cleanup", "b/cleanup"}))
}
