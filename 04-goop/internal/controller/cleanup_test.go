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

// The cleanup runs once on every node where work has begun, when the work is over, and then the Goop goes.
func TestCleanup(t *testing.T) {
	t.Parallel()
	f := newField(t, "a", "b", "c")
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
	f.Expect(f.recorded()).To(HaveExactElements(HavePrefix("Normal CleaningUp"), "Normal CleanedUp cleanupCmd has ended with 0 on all nodes where work ran: 2"))
	f.Expect(f.pods).To(Equal(map[string]int{"a/0": 1, "b/0": 1, "c/0": 1, "a/cleanup": 1, "b/cleanup": 1}))
}

// The cleanup does not begin while work is still there.
func TestCleanupWaitsForTheWork(t *testing.T) {
	t.Parallel()
	f := newField(t, "a", "b")
	f.create(cleanup)
	f.runs("a/0", "b/0")
	f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
	f.clock.SetTime(time.Now())
	f.passes(4)
	f.Expect(f.daemonSets()).To(BeEmpty())
	f.Expect(f.places()).To(Equal([]string{"a/0", "b/0"}), "the garbage collector has not come yet")
	f.taint("b", corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute})
	f.removePod(f.pod("a/0"))
	f.passes(1)
	f.Expect(f.daemonSets()).To(HaveKey("job-cleanup"), "of a node that does not answer nothing is to be expected")
}

// A node that is gone cannot be cleaned up, and a cleanup that fails is told of.
func TestCleanupIncomplete(t *testing.T) {
	t.Parallel()
	f := newField(t, "a", "b", "c")
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
		"Warning CleanupIncomplete cleanupCmd has not ended with 0 on 2 of 3 nodes: "+f.node("a")+" (gone), "+f.node("c")+" (exit code 9)",
	))
}

// After cleanupTimeoutSeconds the Goop goes, and says what was left.
func TestCleanupTimeout(t *testing.T) {
	t.Parallel()
	f := newField(t, "a", "b")
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
		"Warning CleanupIncomplete cleanupCmd has not ended with 0 on 1 of 2 nodes: "+f.node("b")+" (not finished)",
	))
}

// Where work has begun is remembered: over a suspension, the TTL and a restart of the operator.
func TestCleanupAfterAll(t *testing.T) {
	t.Parallel()
	f := newField(t, "a", "b", "c")
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
	f.expectRest()
	f.use()
	f.delete()
	f.Expect(f.places()).To(Equal([]string{"a/cleanup", "c/cleanup"}))
	f.ends(0, "", "a/cleanup", "c/cleanup")
	f.Expect(f.gone()).To(BeTrue())
}

// No work has begun: there is nothing to clean up, and nobody waits.
func TestNothingToCleanUp(t *testing.T) {
	t.Parallel()
	f := newField(t)
	f.create(cleanup)
	f.recorded()
	f.delete()
	f.Expect(f.gone()).To(BeTrue())
	f.Expect(f.recorded()).To(Equal([]string{"Normal CleanedUp no work had begun: there was nothing to clean up"}))
}

// Without a cleanupCmd a Goop goes at once, at whatever moment.
func TestDeletedAtAnyMoment(t *testing.T) {
	t.Parallel()
	f := newField(t, "a", "b")
	f.create(workers(2))
	f.Expect(f.goop().Finalizers).To(BeEmpty())
	f.runs("a/0")
	f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
	before := f.requests.written()
	f.passes(2)
	f.Expect(f.requests.written()).To(Equal(before), "the garbage collector does the rest")
	for _, daemonSet := range f.daemonSets() {
		f.Expect(*daemonSet.OwnerReferences[0].BlockOwnerDeletion).To(BeTrue())
	}
}

// Where a Goop is deleted in the foreground, the garbage collector takes the work first, and what the cleanup needs
// last.
func TestCleanupOfAForegroundDeletion(t *testing.T) {
	t.Parallel()
	f := newField(t, "a", "b")
	f.create(cleanup)
	f.runs("b/0")
	f.Expect(f.shards()[0].OwnerReferences[0].BlockOwnerDeletion).To(BeNil())
	f.leave("b")
	daemonSet, shard := f.daemonSets()["job-0"], f.shards()[0]
	f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
	f.Expect(f.client.Delete(f.ctx, daemonSet)).To(Succeed())
	f.Expect(f.client.Delete(f.ctx, &shard)).To(Succeed())
	f.clock.SetTime(time.Now())
	f.passes(1)
	f.Expect(f.record().Begun).To(HaveKey(f.node("a")), "its pod is still there")
	f.settle()
	f.Expect(f.record().Begun).To(HaveKey(f.node("b")), "the record is still there")
	f.Expect(f.places()).To(Equal([]string{"a/cleanup"}))
	f.Expect(f.daemonSets()["job-cleanup"].OwnerReferences[0].BlockOwnerDeletion).To(BeNil())
	f.ends(0, "", "a/cleanup")
	f.Expect(f.gone()).To(BeTrue())
	f.Expect(f.shards()).To(BeEmpty())
}

// With its namespace the Goop goes at once: nothing can be made in it any more.
func TestCleanupInANamespaceThatGoes(t *testing.T) {
	t.Parallel()
	f := newField(t, "a")
	f.create(cleanup)
	f.runs("a/0")
	f.recorded()
	f.Expect(f.client.Delete(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}})).To(Succeed())
	f.delete()
	f.Expect(f.gone()).To(BeTrue())
	f.Expect(f.recorded()).To(HaveExactElements(
		"Warning CleanupIncomplete cleanupCmd has not ended with 0 on 1 of 1 nodes: " + f.node("a") + " (not finished)",
	))
}

// A foreign DaemonSet has the name: the time-out ends the wait.
func TestCleanupNameConflict(t *testing.T) {
	t.Parallel()
	f := newField(t, "a")
	foreign := desiredCleanup(&v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: f.namespace, UID: "other"}, Spec: f.spec(cleanup)}, nil, testImages)
	foreign.OwnerReferences = nil
	f.Expect(f.client.Create(f.ctx, foreign)).To(Succeed())
	f.create(cleanup)
	f.runs("a/0")
	f.recorded()
	f.delete()
	f.Expect(f.gone()).To(BeFalse())
	f.Expect(f.expectNotRunning(v1alpha1.ReasonNameConflict).Message).To(ContainSubstring("DaemonSet job-cleanup exists"))
	f.expectRest()
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
	g.Expect(message).To(HavePrefix("cleanupCmd has not ended with 0 on 25 of 25 nodes: node-a (gone), node-b"))
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

// A node that joins again after the cleanup has begun gets its cleanup, and is not waited for in vain.
func TestNodeJoinsAgainDuringTheCleanup(t *testing.T) {
	t.Parallel()
	f := newField(t, "a", "b")
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
	f.Expect(f.recorded()).To(ContainElement("Normal CleanedUp cleanupCmd has ended with 0 on all nodes where work ran: 2"))
}

// Where the cleanup has ended it does not run again, whatever becomes of its pod while another node is busy.
func TestCleanupRunsOnce(t *testing.T) {
	t.Parallel()
	f := newField(t, "a", "b")
	f.create(cleanup)
	f.runs("a/0", "b/0")
	f.delete()
	f.ends(7, "", "a/cleanup")
	f.Expect(f.record().Cleaned).To(Equal(map[string]int32{f.node("a"): 7}))
	f.Expect(f.places()).To(Equal([]string{"b/cleanup"}), "a pod that is not there is not created again")
	f.use()
	f.leave("a")
	f.join("a")
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"b/cleanup"}))
	f.ends(0, "", "b/cleanup")
	f.Expect(f.gone()).To(BeTrue())
	f.Expect(f.pods).To(HaveKeyWithValue("a/cleanup", 1))
	f.Expect(f.recorded()).To(ContainElement("Warning CleanupIncomplete cleanupCmd has not ended with 0 on 1 of 2 nodes: " + f.node("a") + " (exit code 7)"))
}

// A finished cleanup pod that is about to be deleted is recorded first, and at once.
func TestCleanupIsRecordedBeforeItsPodGoes(t *testing.T) {
	t.Parallel()
	f := newField(t, "a", "b")
	f.create(cleanup)
	f.runs("a/0", "b/0")
	f.delete()
	f.kubelet("a/cleanup", isOver(0, ""))
	f.Expect(f.client.Delete(f.ctx, f.pod("a/cleanup"))).To(Succeed())
	f.passes(1)
	f.Expect(f.record().Cleaned).To(HaveKey(f.node("a")))
	f.passes(1)
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"b/cleanup"}))
	f.Expect(f.pods).To(HaveKeyWithValue("a/cleanup", 1))
}

// The status says what a deletion waits for, and one Event announces it.
func TestStatusOfADeletion(t *testing.T) {
	t.Parallel()
	f := newField(t, "a")
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
	f.expectRest()
}

// The time-out counts from when the operator saw the deletion: one that was down for longer tries all the same.
func TestCleanupAfterALongAbsence(t *testing.T) {
	t.Parallel()
	f := newField(t, "a")
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

// The DaemonSets of a Goop with a cleanup are not deleted before it in the foreground: while the operator is down, where
// work has begun would be forgotten with them.
func TestRoundsOutlastAForegroundDeletion(t *testing.T) {
	t.Parallel()
	f := newField(t, "a")
	f.create(cleanup)
	f.Expect(f.daemonSets()["job-0"].OwnerReferences[0].BlockOwnerDeletion).To(BeNil())
}
