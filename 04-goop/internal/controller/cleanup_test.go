package controller

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// The cleanup runs after the end of the work, once on every node where work has begun. Then the Goop is removed.
func TestCleanup(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b", "c")
	f.create(cleanup, workers(3))
	f.Expect(f.goop().Finalizers).To(Equal([]string{v1alpha1.CleanupFinalizer}))
	f.runs("a/0")
	f.ends(1, "no", "b/0")
	f.kubelet("c/0", isWaiting("ImagePullBackOff", ""))
	f.settle()
	f.recorded()
	f.delete()
	f.Expect(f.daemonSets()).To(HaveLen(1))
	f.Expect(f.places()).To(Equal([]string{"a/cleanup", "b/cleanup"}), "no work has begun on c")
	work := f.daemonSets()["job-cleanup"].Spec.Template.Spec.InitContainers[1]
	f.Expect(work.Command).To(Equal([]string{"/goop/worker", "--retries", "3", "--", "rm", "-rf", "/tmp/job"}))
	f.Expect(f.gone()).To(BeFalse())
	f.ends(0, "", "a/cleanup")
	f.Expect(f.gone()).To(BeFalse())
	f.use()
	f.ends(0, "", "b/cleanup")
	f.Expect(f.gone()).To(BeTrue())
	f.Expect(f.recorded()).To(HaveExactElements(HavePrefix("Normal CleaningUp"), "Normal CleanedUp cleanupCmd exited with 0 on all nodes where work ran: 2"))
	f.Expect(f.pods).To(Equal(map[string]int{"a/0": 1, "b/0": 1, "c/0": 1, "a/cleanup": 1, "b/cleanup": 1}))
}

// The cleanup does not begin while pods of the work exist.
func TestCleanupWaitsForTheWork(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(cleanup)
	f.runs("a/0", "b/0")
	f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
	f.clock.SetTime(time.Now())
	f.endsWork()
	f.Expect(f.places()).To(Equal([]string{"a/0", "b/0"}), "the garbage collector has not run yet")
	f.taint("b", corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute})
	f.removePod(f.pod("a/0"))
	f.reconciles(1)
	f.Expect(f.daemonSets()).To(HaveKey("job-cleanup"), "the cleanup does not wait for an unreachable node")
}

// A node that was deleted cannot be cleaned up. The Event lists it, and nodes where the cleanup failed.
func TestCleanupIncomplete(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b", "c")
	f.create(cleanup)
	f.runs("a/0", "b/0", "c/0")
	f.leave("a")
	f.recorded()
	f.delete()
	f.Expect(f.places()).To(Equal([]string{"b/cleanup", "c/cleanup"}))
	f.ends(0, "", "b/cleanup")
	f.ends(9, "", "c/cleanup")
	f.Expect(f.gone()).To(BeTrue())
	f.Expect(f.recorded()).To(HaveExactElements(HavePrefix("Normal CleaningUp"),
		"Warning CleanupIncomplete cleanupCmd did not exit with 0 on 2 of 3 nodes: "+f.node("a")+" (gone), "+f.node("c")+" (exit code 9)",
	))
}

// After cleanupTimeoutSeconds the Goop is removed, and the Event lists the nodes that were not cleaned up.
func TestCleanupTimeout(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(cleanup, func(s *v1alpha1.GoopSpec) { s.CleanupTimeoutSeconds = 60 })
	f.runs("a/0", "b/0")
	f.recorded()
	f.delete()
	f.ends(0, "", "a/cleanup")
	result, err := f.reconcile()
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(result.RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", time.Minute)))
	f.Expect(f.gone()).To(BeFalse())
	f.clock.Step(result.RequeueAfter)
	f.settle()
	f.Expect(f.gone()).To(BeTrue())
	f.Expect(f.recorded()).To(HaveExactElements(HavePrefix("Normal CleaningUp"),
		"Warning CleanupIncomplete cleanupCmd did not exit with 0 on 1 of 2 nodes: "+f.node("b")+" (not finished)",
	))
}

// The record of the nodes where work has begun survives a suspension, the TTL and a restart of the operator.
func TestCleanupAfterAll(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b", "c")
	f.create(cleanup, workers(2), ttl(10))
	f.runs("a/0")
	f.change(suspended)
	f.Expect(f.record().Begun).To(Equal(map[string]bool{f.node("a"): true, f.node("b"): true}), "b's work was about to begin")
	f.change(resumed)
	f.leave("b")
	f.Expect(f.places()).To(Equal([]string{"a/0", "c/0"}))
	f.ends(0, "", "a/0", "c/0")
	f.clock.Step(time.Hour)
	f.settle()
	f.Expect(f.daemonSets()).To(BeEmpty())
	f.Expect(f.shards()).NotTo(BeEmpty(), "the cleanup needs it")
	f.expectSteadyState()
	f.use()
	f.delete()
	f.Expect(f.places()).To(Equal([]string{"a/cleanup", "c/cleanup"}))
	f.ends(0, "", "a/cleanup", "c/cleanup")
	f.Expect(f.gone()).To(BeTrue())
}

// No work has begun, so the Goop is removed at once.
func TestNothingToCleanUp(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t)
	f.create(cleanup)
	f.recorded()
	f.delete()
	f.Expect(f.gone()).To(BeTrue())
	f.Expect(f.recorded()).To(Equal([]string{"Normal CleanedUp no worker had started: there was nothing to clean up"}))
}

// Without a cleanupCmd a Goop is removed at once, whatever its state.
func TestDeletedAtAnyMoment(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(workers(2))
	f.Expect(f.goop().Finalizers).To(BeEmpty())
	f.runs("a/0")
	f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
	before := f.requests.written()
	f.reconciles(2)
	f.Expect(f.requests.written()).To(Equal(before), "the garbage collector deletes the dependents")
	for _, daemonSet := range f.daemonSets() {
		f.Expect(*daemonSet.OwnerReferences[0].BlockOwnerDeletion).To(BeTrue())
	}
}

// In a foreground deletion the finalizer keeps the record until the cleanup has ended.
func TestCleanupOfAForegroundDeletion(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(cleanup)
	f.runs("b/0")
	f.Expect(f.shards()[0].OwnerReferences[0].BlockOwnerDeletion).To(BeNil())
	f.leave("b")
	daemonSet, shard := f.daemonSets()["job-0"], f.shards()[0]
	f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
	f.Expect(f.client.Delete(f.ctx, daemonSet)).To(Succeed())
	f.Expect(f.client.Delete(f.ctx, &shard)).To(Succeed())
	f.clock.SetTime(time.Now())
	f.reconciles(1)
	f.Expect(f.record().Begun).To(HaveKey(f.node("a")), "its pod still exists")
	f.settle()
	f.Expect(f.record().Begun).To(HaveKey(f.node("b")), "the record still exists")
	f.Expect(f.places()).To(Equal([]string{"a/cleanup"}))
	f.Expect(f.daemonSets()["job-cleanup"].OwnerReferences[0].BlockOwnerDeletion).To(BeNil())
	f.ends(0, "", "a/cleanup")
	f.Expect(f.gone()).To(BeTrue())
	f.Expect(f.shards()).To(BeEmpty())
}

// A Goop is removed at once with its namespace, because no objects can be created there.
func TestCleanupInATerminatingNamespace(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(cleanup)
	f.runs("a/0")
	f.recorded()
	f.Expect(f.client.Delete(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}})).To(Succeed())
	f.delete()
	f.Expect(f.gone()).To(BeTrue())
	f.Expect(f.recorded()).To(HaveExactElements(
		"Warning CleanupIncomplete cleanupCmd did not exit with 0 on 1 of 1 nodes: " + f.node("a") + " (not finished)",
	))
}

// A DaemonSet that the Goop does not own has the name. The deletion waits until cleanupTimeoutSeconds expires.
func TestCleanupNameConflict(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	notOwned := desiredCleanup(&v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: f.namespace, UID: "other"}, Spec: f.spec(cleanup)}, nil, testImages)
	notOwned.OwnerReferences = nil
	f.Expect(f.client.Create(f.ctx, notOwned)).To(Succeed())
	f.create(cleanup)
	f.runs("a/0")
	f.recorded()
	f.delete()
	f.Expect(f.gone()).To(BeFalse())
	f.Expect(f.expectNotRunning(v1alpha1.ReasonNameConflict).Message).To(ContainSubstring("DaemonSet job-cleanup already exists"))
	f.expectSteadyState()
	f.clock.Step(time.Hour)
	f.settle()
	f.Expect(f.gone()).To(BeTrue())
	f.Expect(f.recorded()).To(HaveExactElements(HavePrefix("Warning CleanupIncomplete")))
	f.Expect(f.daemonSets()).To(HaveKey("job-cleanup"))
}

func TestCleanupOutcomeNamesTwenty(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	observed := newObservation(&v1alpha1.Goop{}, started)
	for _, letter := range "abcdefghijklmnopqrstuvwxy" {
		observed.record.Begin("node-" + string(letter))
	}
	reason, message := cleanupOutcome(observed)
	g.Expect(reason).To(Equal(v1alpha1.ReasonCleanupIncomplete))
	g.Expect(message).To(HavePrefix("cleanupCmd did not exit with 0 on 25 of 25 nodes: node-a (gone), node-b"))
	g.Expect(message).To(HaveSuffix("node-t (gone) and 5 more"))
	observed.record.Begun = map[string]bool{}
	for range 30 {
		observed.record.Begun[strings.Repeat("y", 150+len(observed.record.Begun))] = true
	}
	_, message = cleanupOutcome(observed)
	g.Expect(len(message)).To(BeNumerically("<=", maxEventNote), "longer ones are lost")
	g.Expect(message).To(HaveSuffix(" more"))
	g.Expect(uncleaned(observed)).To(HaveLen(30))
}

// A node that joins again after the cleanup has begun gets its cleanup.
func TestNodeJoinsAgainDuringTheCleanup(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(cleanup)
	f.runs("a/0", "b/0")
	f.leave("b")
	f.delete()
	f.Expect(f.places()).To(Equal([]string{"a/cleanup"}))
	f.join("b")
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"a/cleanup", "b/cleanup"}))
	f.ends(0, "", "a/cleanup", "b/cleanup")
	f.Expect(f.gone()).To(BeTrue())
	f.Expect(f.recorded()).To(ContainElement("Normal CleanedUp cleanupCmd exited with 0 on all nodes where work ran: 2"))
}

// Where the cleanup has ended it does not run again, even if its pod is deleted while the cleanup runs on another node.
func TestCleanupRunsOnce(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(cleanup)
	f.runs("a/0", "b/0")
	f.delete()
	f.ends(7, "", "a/cleanup")
	f.Expect(f.record().Cleaned).To(Equal(map[string]int32{f.node("a"): 7}))
	f.Expect(f.places()).To(Equal([]string{"b/cleanup"}), "the deleted pod is not created again")
	f.use()
	f.leave("a")
	f.join("a")
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"b/cleanup"}))
	f.ends(0, "", "b/cleanup")
	f.Expect(f.gone()).To(BeTrue())
	f.Expect(f.pods).To(HaveKeyWithValue("a/cleanup", 1))
	f.Expect(f.recorded()).To(ContainElement("Warning CleanupIncomplete cleanupCmd did not exit with 0 on 1 of 2 nodes: " + f.node("a") + " (exit code 7)"))
}

// The result of a cleanup pod that is being deleted is recorded at once.
func TestCleanupIsRecordedBeforeItsPodGoes(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(cleanup)
	f.runs("a/0", "b/0")
	f.delete()
	f.kubelet("a/cleanup", hasFinished(0, ""))
	f.Expect(f.client.Delete(f.ctx, f.pod("a/cleanup"))).To(Succeed())
	f.reconciles(1)
	f.Expect(f.record().Cleaned).To(HaveKey(f.node("a")))
	f.reconciles(1)
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"b/cleanup"}))
	f.Expect(f.pods).To(HaveKeyWithValue("a/cleanup", 1))
}

// The status has the reason for which a deletion waits, and one Event announces it.
func TestStatusOfADeletion(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(cleanup)
	f.runs("a/0")
	f.recorded()
	f.delete()
	f.Expect(f.expectNotRunning(v1alpha1.ReasonCleaningUp).Message).To(ContainSubstring("cleanupCmd"))
	f.Expect(f.recorded()).To(ConsistOf(HavePrefix("Normal CleaningUp")))
	f.kubelet("a/cleanup", isWaiting("ErrImagePull", "no such image"))
	f.settle()
	f.Expect(f.expectNotRunning(v1alpha1.ReasonImageNotPulled).Message).To(ContainSubstring("no such image"))
	f.Expect(f.recorded()).To(ConsistOf(HavePrefix("Warning ImageNotPulled")))
	f.expectSteadyState()
}

// cleanupTimeoutSeconds counts from when the operator observed the deletion, so that the cleanup runs even after the
// operator was down for longer.
func TestCleanupAfterALongAbsence(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(cleanup, func(s *v1alpha1.GoopSpec) { s.CleanupTimeoutSeconds = 60 })
	f.runs("a/0")
	f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
	f.clock.SetTime(time.Now().Add(time.Hour))
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"a/cleanup"}))
	f.use()
	f.clock.Step(50 * time.Second)
	f.settle()
	f.Expect(f.gone()).To(BeFalse())
	f.clock.Step(10 * time.Second)
	f.settle()
	f.Expect(f.gone()).To(BeTrue())
}

// The Goop is deleted in the foreground while the operator is down. The garbage collector deletes the DaemonSets. Work on
// b had begun after the last write of the record. The cleanup also runs there, even if no pods of the work exist.
func TestForegroundDeletionWhileTheOperatorIsDown(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]bool{"its pods are ending": true, "nothing is left of it": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a", "b")
			f.create(cleanup)
			f.runs("a/0")
			f.kubelet("b/0", isRunning)
			f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
			f.Expect(f.client.Delete(f.ctx, f.daemonSets()["job-0"])).To(Succeed())
			if !left {
				f.simulateDaemonSets()
				f.Expect(f.podList()).To(BeEmpty())
			}
			f.use()
			f.clock.SetTime(time.Now())
			f.settle()
			f.Expect(f.places()).To(Equal([]string{"a/cleanup", "b/cleanup"}))
			f.recorded()
			f.ends(0, "", "a/cleanup", "b/cleanup")
			f.Expect(f.gone()).To(BeTrue())
			f.Expect(f.recorded()).To(HaveExactElements("Normal CleanedUp cleanupCmd exited with 0 on all nodes where work ran: 2"))
		})
	}
}

// With a jobCount the cleanup does not run on nodes where the operator has deleted the work before it began.
func TestCleanupRunsOnlyWhereWorkBegan(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b", "c")
	f.create(cleanup, workers(1))
	place := f.places()[0]
	f.runs(place)
	f.delete()
	f.Expect(f.places()).To(HaveExactElements(strings.Replace(place, "/0", "/cleanup", 1)))
}

// A user deletes the DaemonSet of the cleanup. No two copies of the cleanup run at the same time.
func TestCleanupIsCreatedAfterThePodsOfAnother(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(cleanup)
	f.runs("a/0", "b/0")
	f.delete()
	f.kubelet("a/cleanup", isRunning)
	f.kubelet("b/cleanup", hasFinished(0, ""))
	f.Expect(f.client.Delete(f.ctx, f.daemonSets()["job-cleanup"])).To(Succeed())
	f.clock.Step(2 * writeInterval)
	f.reconciles(3)
	f.Expect(f.daemonSets()).To(BeEmpty())
	f.settle()
	f.Expect(f.pods).To(Equal(map[string]int{"a/0": 1, "b/0": 1, "a/cleanup": 2, "b/cleanup": 1}))
	f.ends(0, "", "a/cleanup")
	f.Expect(f.gone()).To(BeTrue())
}
