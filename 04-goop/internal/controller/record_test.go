package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/record"
)

// forge creates a ConfigMap of the record as a user can: with all metadata of the operator's own.
func (f *goopTestEnv) forge(number int, text string) {
	shard := desiredShard(f.goop(), record.Shard{Number: number, Text: text})
	f.Expect(f.client.Create(f.ctx, shard, client.FieldOwner(fieldOwner))).To(Succeed())
}

// removeShard deletes a ConfigMap of the record at once, like a user who removes its finalizer.
func (f *goopTestEnv) removeShard(shard *corev1.ConfigMap) {
	shard.Finalizers = nil
	f.Expect(f.client.Update(f.ctx, shard)).To(Succeed())
	f.Expect(f.client.Delete(f.ctx, shard)).To(Succeed())
}

// expectReleased asserts that no finalizer keeps the record.
func (f *goopTestEnv) expectReleased() {
	for _, shard := range f.shards() {
		f.Expect(shard.Finalizers).To(BeEmpty(), shard.Name)
	}
}

// The operator does not trust a record that it did not write: no worker counts as finished, and the cleanup does not run
// where no work was.
func TestForgedRecord(t *testing.T) {
	t.Parallel()
	t.Run("before the operator's", func(t *testing.T) {
		t.Parallel()
		f := newGoopTestEnv(t, "a", "b")
		f.create(cleanup, suspended)
		f.forge(0, "s 2026-01-01T00:00:00Z\nf "+f.node("a")+" 0 0 1\n")
		f.change(resumed)
		f.Expect(f.expectNotRunning(v1alpha1.ReasonNameConflict).Message).To(ContainSubstring("job-record-0"))
		f.Expect(f.daemonSets()).To(BeEmpty())
		f.delete()
		f.Expect(f.gone()).To(BeTrue())
		f.Expect(f.daemonSets()).To(BeEmpty())
	})
	t.Run("after the operator's", func(t *testing.T) {
		t.Parallel()
		f := newGoopTestEnv(t, "a", "b")
		f.create(cleanup, workers(1))
		f.runs("a/0")
		f.forge(1, "b "+f.node("b")+"\n")
		f.settle()
		f.delete()
		f.Expect(f.places()).To(Equal([]string{"a/cleanup"}))
		f.ends(0, "", "a/cleanup")
		f.Expect(f.gone()).To(BeTrue())
	})
}

// The status has the uids of the record before any work runs.
func TestRecordIsInTheStatusBeforeWorkBegins(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.Expect(f.client.Create(f.ctx, &v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: f.namespace}, Spec: f.spec()})).To(Succeed())
	for len(f.daemonSets()) == 0 {
		f.Expect(f.goop().Status.RecordUIDs).To(HaveLen(min(1, len(f.goop().Status.Conditions))))
		f.reconciles(1)
	}
	f.Expect(f.goop().Status.RecordUIDs).To(Equal([]string{string(f.shards()[0].UID)}))
}

// The record is lost, so which workers have finished is no longer known. The Goop has failed, and no work runs again. The
// cleanup runs wherever there may have been work.
func TestRecordIsLost(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]func(*v1alpha1.GoopSpec){"with a jobCount": workers(2), "everywhere": func(*v1alpha1.GoopSpec) {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a", "b")
			f.create(cleanup, work, deadline(600))
			f.ends(0, "", "a/0")
			f.runs("b/0")
			f.Expect(f.client.Delete(f.ctx, f.pod("a/0"))).To(Succeed())
			f.reconciles(3)
			f.settle()
			f.Expect(f.places()).To(Equal([]string{"b/0"}))
			f.removeShard(&f.shards()[0])
			f.settle()
			f.Expect(f.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonRecordLost).Message).To(ContainSubstring("job-record-0"))
			f.Expect(f.goop().Status.Succeeded).To(Equal(int32(1)), "the counts stay")
			f.Expect(f.places()).To(BeEmpty())
			f.Expect(f.pods).To(Equal(map[string]int{"a/0": 1, "b/0": 1}))
			f.expectSteadyState()
			f.delete()
			f.Expect(f.places()).To(Equal([]string{"a/cleanup", "b/cleanup"}))
			f.ends(0, "", "a/cleanup", "b/cleanup")
			f.Expect(f.gone()).To(BeTrue())
			f.expectReleased()
			f.Expect(f.recorded()).To(ContainElement(HavePrefix("Warning CleanupIncomplete cleanupCmd exited with 0 on 2 nodes, and")))
		})
	}
}

// The cache may be stale: a shard is lost only if the API server does not have it.
func TestRecordIsNotLostBehindTheCache(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create()
	f.ends(0, "", "a/0")
	f.blind(&corev1.ConfigMap{})
	for range 3 {
		_, _ = f.reconcile()
	}
	f.use()
	f.settle()
	f.expectRunning(v1alpha1.ReasonWorking)
}

// The record cannot be read, or no longer exists, when the Goop is deleted. The cleanup runs wherever work may have run.
func TestCleanupWithoutARecord(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(*goopTestEnv){
		"unreadable": func(f *goopTestEnv) {
			shard := f.shards()[0]
			shard.Data[record.Key] = "s 2026-01-01T00:00:00Z\nnonsense\nb " + f.node("b") + "\nb no-end"
			f.Expect(f.client.Update(f.ctx, &shard)).To(Succeed())
		},
		"lost": func(f *goopTestEnv) { f.removeShard(&f.shards()[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a", "b")
			f.create(cleanup, workers(2))
			f.runs("a/0", "b/0")
			damage(f)
			f.delete()
			f.Expect(f.places()).To(Equal([]string{"a/cleanup", "b/cleanup"}))
			f.ends(0, "", "a/cleanup", "b/cleanup")
			f.Expect(f.gone()).To(BeTrue())
			f.expectReleased()
		})
	}
}

// The Goop is deleted with --cascade=orphan. The garbage collector removes the owner from its dependents, and no cleanup
// is lost.
func TestCleanupOfAnOrphaningDeletion(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(cleanup)
	f.runs("a/0")
	goop := f.goop()
	goop.Finalizers = append(goop.Finalizers, metav1.FinalizerOrphanDependents)
	f.Expect(f.client.Update(f.ctx, goop)).To(Succeed())
	f.Expect(f.client.Delete(f.ctx, goop)).To(Succeed())
	for _, shard := range f.shards() {
		shard.OwnerReferences = nil
		f.Expect(f.client.Update(f.ctx, &shard)).To(Succeed())
	}
	daemonSet := f.daemonSets()["job-0"]
	daemonSet.OwnerReferences = nil
	f.Expect(f.client.Update(f.ctx, daemonSet)).To(Succeed())
	f.clock.SetTime(time.Now())
	f.settle()
	f.Expect(f.daemonSets()).To(BeEmpty(), "the garbage collector could still orphan a DaemonSet of the cleanup")
	goop = f.goop()
	controllerutil.RemoveFinalizer(goop, metav1.FinalizerOrphanDependents)
	f.Expect(f.client.Update(f.ctx, goop)).To(Succeed())
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"a/cleanup"}))
	f.ends(0, "", "a/cleanup")
	f.Expect(f.gone()).To(BeTrue())
	f.expectReleased()
}

// fillShard leaves no room in the first shard for another entry, without a change of its meaning.
func (f *goopTestEnv) fillShard() {
	shard := f.shards()[0]
	start := "s 2026-01-01T00:00:00Z\n"
	text := shard.Data[record.Key]
	shard.Data[record.Key] = text + strings.Repeat("s -\n", (record.ShardSize-len(text)-len(start))/len("s -\n")) + start
	f.Expect(f.client.Update(f.ctx, &shard)).To(Succeed())
}

// A record of two shards is released completely, whichever request of the release fails. After a foreground deletion a
// shard is deleted when its finalizer is removed, and the remaining shards must still have the meaning of the whole
// record.
func TestEveryShardIsReleased(t *testing.T) {
	t.Parallel()
	for n := range 10 {
		t.Run(fmt.Sprint("request ", n+1), func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a", "b")
			f.create(cleanup)
			f.runs("a/0")
			f.fillShard()
			f.runs("b/0")
			f.Expect(f.shards()).To(HaveLen(2))
			f.delete()
			for _, shard := range f.shards() {
				f.Expect(f.client.Delete(f.ctx, &shard)).To(Succeed())
			}
			f.recorded()
			f.kubelet("a/cleanup", hasFinished(0, ""))
			f.kubelet("b/cleanup", hasFinished(0, ""))
			f.requests.crash = crash{at: len(f.requests.seen) + n + 1}
			f.settle()
			f.Expect(f.gone()).To(BeTrue())
			f.Expect(f.shards()).To(BeEmpty())
			f.Expect(f.recorded()).To(HaveExactElements("Normal CleanedUp cleanupCmd exited with 0 on all nodes where work ran: 2"))
		})
	}
}

// A user removes the finalizer of the Goop. Its record is released too, even if a new Goop has the same name.
func TestRecordOfAGoopThatIsGone(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"it no longer exists": false, "another exists": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a")
			f.create(cleanup)
			f.runs("a/0")
			f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
			goop := f.goop()
			goop.Finalizers = nil
			f.Expect(f.client.Update(f.ctx, goop)).To(Succeed())
			if again {
				f.create(cleanup)
				f.expectNotRunning(v1alpha1.ReasonNameConflict)
			}
			// The garbage collector deletes the dependents of the first Goop.
			for _, shard := range f.shards() {
				f.Expect(f.client.Delete(f.ctx, &shard)).To(Succeed())
			}
			for _, daemonSet := range f.daemonSets() {
				f.Expect(f.client.Delete(f.ctx, daemonSet)).To(Succeed())
			}
			f.settle()
			if !again {
				f.Expect(f.shards()).To(BeEmpty())
				return
			}
			f.expectRunning(v1alpha1.ReasonWorking)
			f.Expect(f.places()).To(Equal([]string{"a/0"}))
			f.Expect(f.shards()[0].DeletionTimestamp).To(BeNil())
		})
	}
}

// The record of an existing Goop is not released, because the cleanup has not read it yet.
func TestRecordIsKeptForTheCleanup(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(cleanup)
	f.runs("a/0")
	f.Expect(f.client.Delete(f.ctx, &f.shards()[0])).To(Succeed())
	f.blind(&v1alpha1.Goop{})
	f.reconciles(2)
	f.Expect(f.shards()).To(HaveLen(1))
}
