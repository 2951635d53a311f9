package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// orphanWorkers deletes the first DaemonSet of the work with --cascade=orphan while the operator is down.
func (f *goopTestEnv) orphanWorkers() {
	daemonSet := f.daemonSets()["job-0"]
	f.Expect(f.client.Delete(f.ctx, daemonSet)).To(Succeed())
	for _, pod := range f.podList() {
		if metav1.IsControlledBy(&pod, daemonSet) {
			pod.OwnerReferences = nil
			f.Expect(f.client.Update(f.ctx, &pod)).To(Succeed())
		}
	}
	f.use()
}

// A user has orphaned workers, and they have to end. A DaemonSet without nodes adopts and ends them. Until then the Goop is
// not Suspended, and its cleanup does not begin.
func TestOrphanedWorkersEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end  func(*goopTestEnv)
		left []string
	}{
		"suspended": {func(f *goopTestEnv) {
			f.suspend()
			f.reconciles(5)
			f.expect(v1alpha1.ConditionSuspended, metav1.ConditionFalse, v1alpha1.ReasonSuspending)
			f.settle()
			f.expect(v1alpha1.ConditionSuspended, metav1.ConditionTrue, v1alpha1.ReasonSuspended)
		}, nil},
		"deadline": {func(f *goopTestEnv) {
			f.clock.Step(time.Hour)
			f.settle()
			f.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonDeadlineExceeded)
		}, nil},
		"deadline, and the TTL": {func(f *goopTestEnv) {
			f.change(ttl(0))
			f.orphanWorkers()
			f.clock.Step(time.Hour)
			f.settle()
			f.Expect(f.daemonSets()).To(HaveEach(HaveField("OwnerReferences", HaveExactElements(HaveField("Kind", "Pod")))), "the garbage collector deletes it")
		}, nil},
		"no host access": {func(f *goopTestEnv) {
			f.reconciler.allowHostAccess = false
			f.settle()
			f.expectNotRunning(v1alpha1.ReasonHostAccessNotAllowed)
		}, nil},
		"deleted": {func(f *goopTestEnv) {
			f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
			f.clock.SetTime(time.Now())
			f.reconciles(5)
			f.Expect(f.daemonSets()).NotTo(HaveKey("job-cleanup"))
			f.settle()
		}, []string{"a/cleanup", "b/cleanup"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a", "b")
			f.reconciler.allowHostAccess = true
			f.create(workers(2), cleanup, deadline(600), withHost)
			f.runs("a/0", "b/0")
			f.orphanWorkers()
			test.end(f)
			f.Expect(f.places()).To(Equal(test.left))
			f.Expect(f.pods).To(And(HaveKeyWithValue("a/0", 1), HaveKeyWithValue("b/0", 1)))
		})
	}
}

// A Goop goes on where its orphaned workers are, wherever else there is room.
func TestOrphanedWorkersGoOn(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "c", "d")
	f.create(workers(2))
	f.runs("c/0", "d/0")
	f.join("a")
	f.join("b")
	f.orphanWorkers()
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"c/0", "d/0"}))
	f.ends(0, "", "c/0", "d/0")
	f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	f.Expect(f.pods).To(Equal(map[string]int{"c/0": 1, "d/0": 1}))
}

// The Goop was deleted after that, while the operator was down. Another one of its name may exist.
func TestOrphanedWorkersOfADeletedGoopEnd(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"deleted": false, "created again": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a", "b")
			f.create()
			f.runs("a/0", "b/0")
			f.orphanWorkers()
			shard, old := f.shards()[0], f.podList()
			f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
			f.Expect(f.client.Delete(f.ctx, &shard)).To(Succeed())
			if again {
				f.create()
			}
			f.settle()
			adopter := f.daemonSets()[min(old[0].Name, old[1].Name)]
			f.Expect(adopter).NotTo(BeNil())
			f.Expect(adopter.OwnerReferences).To(HaveExactElements(HaveField("Kind", "Pod")), "the garbage collector deletes it")
			if !again {
				f.Expect(f.podList()).To(BeEmpty())
				return
			}
			f.Expect(f.places()).To(Equal([]string{"a/0", "b/0"}))
			f.Expect(f.podList()).NotTo(ContainElement(HaveField("UID", BeElementOf(old[0].UID, old[1].UID))))
		})
	}
}

// It is no error either if the namespace is being deleted, too: its controller deletes the pods.
func TestOrphanedWorkersInATerminatingNamespace(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create()
	f.runs("a/0", "b/0")
	f.orphanWorkers()
	shard := f.shards()[0]
	f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
	f.Expect(f.client.Delete(f.ctx, &shard)).To(Succeed())
	f.Expect(f.client.Delete(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}})).To(Succeed())
	for range 3 {
		_, err := f.reconcile()
		f.Expect(err).NotTo(HaveOccurred())
	}
	f.Expect(f.daemonSets()).To(BeEmpty())
}
