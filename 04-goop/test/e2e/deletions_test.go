package e2e

import (
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/shared/e2e"
	"example.com/workbook/shared/expect"
)

const (
	background = metav1.DeletePropagationBackground
	foreground = metav1.DeletePropagationForeground
	orphan     = metav1.DeletePropagationOrphan
)

// The states in which Goops, or their dependents, are deleted.
var (
	runs      = state{"a Goop that runs", v1alpha1.GoopSpec{Cmd: endless}, (*deleted).runs}
	mustClean = state{"a Goop that runs and has a cleanupCmd", v1alpha1.GoopSpec{Cmd: endless, CleanupCmd: cleans}, (*deleted).runs}
	oneEnded  = state{"a Goop of which one worker has finished", v1alpha1.GoopSpec{Cmd: quickOnOne}, (*deleted).hasOneFinished}
	ended     = state{"a Goop that is Complete and has a cleanupCmd", v1alpha1.GoopSpec{Cmd: greets, CleanupCmd: cleans}, (*deleted).isComplete}
	cleaning  = state{"a Goop that is being cleaned up", v1alpha1.GoopSpec{Cmd: greets, CleanupCmd: quickOnOne}, (*deleted).isBeingCleanedUp}
)

// What takes long begins early, so that no process runs alone at the end.
var _ = Describe("Deleting", SpecPriority(1), func() {
	e2e.Deletions(env, []e2e.Deletion{
		runs.deletes(theGoop, background, "leaves nothing", (*deleted).leavesNothing),
		runs.deletes(theGoop, foreground, "leaves nothing", (*deleted).leavesNothing),
		runs.deletes(theGoop, orphan, "leaves its workers, which another Goop of that name does not change", (*deleted).isNotAdopted),

		mustClean.deletes(theGoop, background, "cleans up every node once, and leaves nothing", (*deleted).isCleanedUp),
		mustClean.deletes(theGoop, foreground, "cleans up every node once, and leaves nothing", (*deleted).isCleanedUp),
		mustClean.deletes(theGoop, orphan, "cleans up every node once, and leaves its record", (*deleted).isCleanedUpButForItsRecord),

		oneEnded.deletes(theWork, background, "runs unfinished work again, and no other", (*deleted).runsUnfinishedWorkAgain),
		oneEnded.deletes(theWork, foreground, "runs unfinished work again, and no other", (*deleted).runsUnfinishedWorkAgain),
		oneEnded.deletes(theWork, orphan, "has the same workers go on", (*deleted).sameWorkersGoOn),

		runs.deletes(theWorkAndTheGoop, orphan, "ends its workers, and leaves nothing", (*deleted).leavesNothing),
		mustClean.deletes(theWorkAndTheGoop, orphan, "ends its workers, cleans up every node once, and leaves nothing", (*deleted).isCleanedUp),

		oneEnded.deletes(theRecord, background, "fails it, and no work runs again", (*deleted).failsWithoutItsRecord),
		oneEnded.deletes(theRecord, foreground, "fails it, and no work runs again", (*deleted).failsWithoutItsRecord),
		oneEnded.deletes(theRecord, orphan, "fails it, and no work runs again", (*deleted).failsWithoutItsRecord),

		ended.deletes(theRecord, background, "keeps the record for the cleanup", (*deleted).isCleanedUpLater),
		ended.deletes(theRecord, foreground, "keeps the record for the cleanup", (*deleted).isCleanedUpLater),
		ended.deletes(theRecord, orphan, "keeps the record for the cleanup", (*deleted).isCleanedUpLater),

		cleaning.deletes(theCleanup, background, "cleans up again", (*deleted).isCleanedUpAgain),
		cleaning.deletes(theCleanup, foreground, "cleans up again", (*deleted).isCleanedUpAgain),
		cleaning.deletes(theCleanup, orphan, "has the same cleanup go on", (*deleted).sameCleanupGoesOn),
	})
})

// target is what is deleted: a Goop, or one of its dependents.
type target struct {
	name   string
	object func(*v1alpha1.Goop) client.Object
	// theGoopToo: the Goop is deleted next, in the background, while the operator is down.
	theGoopToo bool
}

var (
	theGoop = target{object: func(goop *v1alpha1.Goop) client.Object { return goop.DeepCopy() }}
	theWork = target{name: "the DaemonSet of ", object: func(goop *v1alpha1.Goop) client.Object {
		return &appsv1.DaemonSet{ObjectMeta: named(goop, "-0")}
	}}
	theRecord = target{name: "the record of ", object: func(goop *v1alpha1.Goop) client.Object {
		return &corev1.ConfigMap{ObjectMeta: named(goop, "-record-0")}
	}}
	theCleanup = target{name: "the DaemonSet of the cleanup of ", object: func(goop *v1alpha1.Goop) client.Object {
		return &appsv1.DaemonSet{ObjectMeta: named(goop, "-cleanup")}
	}}
	theWorkAndTheGoop = target{name: "the DaemonSet, and then the Goop, of ", object: theWork.object, theGoopToo: true}
)

func named(goop *v1alpha1.Goop, suffix string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: goop.Namespace, Name: goop.Name + suffix}
}

// state is a Goop, and the state in which it, or a dependent, is deleted.
type state struct {
	name  string
	spec  v1alpha1.GoopSpec
	reach func(*deleted)
}

// deletes is the deletion of a Goop in this state, or of one of its dependents.
func (s state) deletes(which target, cascade metav1.DeletionPropagation, outcome string, check func(*deleted)) e2e.Deletion {
	return e2e.Deletion{
		Name:     fmt.Sprintf("%s%s, with --cascade=%s, %s", which.name, s.name, strings.ToLower(string(cascade)), outcome),
		OnlyDown: which.theGoopToo,
		Begin: func(ctx SpecContext) e2e.DeletionSteps {
			w := newTestEnv(ctx)
			d := &deleted{testEnv: w, nodes: len(w.nodes()), history: w.watch(), goop: w.create("goop", s.spec)}
			return e2e.DeletionSteps{
				Reach: func() {
					s.reach(d)
					d.object, d.old = which.object(d.goop), w.pods(d.goop)
					until(w, d.object, func(Gomega, client.Object) {})
				},
				Delete: func() {
					Expect(env.Client.Delete(ctx, d.object.DeepCopyObject().(client.Object), client.PropagationPolicy(cascade))).To(Succeed())
					if which.theGoopToo {
						w.gone(d.object.DeepCopyObject().(client.Object))
						w.delete(d.goop)
					}
				},
				Collect: func() { d.isCollected(cascade) },
				Expect:  func() { check(d) },
			}
		},
	}
}

// deleted is what is deleted, and what there was at that time.
type deleted struct {
	*testEnv
	nodes   int
	history *history
	goop    *v1alpha1.Goop
	object  client.Object
	// old are the pods of that time.
	old []corev1.Pod
}

func (d *deleted) runs() {
	GinkgoHelper()
	d.running(d.goop, d.nodes)
}

func (d *deleted) isComplete() {
	GinkgoHelper()
	d.complete(d.goop, d.nodes)
}

func (d *deleted) hasOneFinished() {
	GinkgoHelper()
	d.runs()
	Expect(d.let(&d.pods(d.goop)[0])).To(Succeed())
	until(d.testEnv, d.goop, func(g Gomega, live *v1alpha1.Goop) { g.Expect(live.Status.Succeeded).To(BeEquivalentTo(1)) })
	Expect(d.recorded(d.goop).Finished).To(HaveLen(1))
}

func (d *deleted) isBeingCleanedUp() {
	GinkgoHelper()
	d.isComplete()
	d.delete(d.goop)
	d.cleaned(d.history, d.goop, d.nodes)
	Eventually(d.ctx, func() []corev1.Pod { return d.pods(d.goop) }).WithTimeout(patience).WithPolling(expect.Interval).
		Should(HaveEach(HaveField("Labels", HaveKeyWithValue(v1alpha1.LabelRole, v1alpha1.RoleCleanup))))
}

// isCollected waits until the object and its pods are gone, or until only the operator's finalizer keeps the object.
func (d *deleted) isCollected(cascade metav1.DeletionPropagation) {
	GinkgoHelper()
	Eventually(d.ctx, func(g Gomega) {
		live := d.object.DeepCopyObject().(client.Object)
		err := env.Client.Get(d.ctx, client.ObjectKeyFromObject(live), live)
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())
		g.Expect(apierrors.IsNotFound(err) || slices.Equal(live.GetFinalizers(), []string{v1alpha1.CleanupFinalizer})).To(BeTrue(), "%v", live.GetFinalizers())
		_, isRecord := d.object.(*corev1.ConfigMap)
		// While its finalizer keeps the Goop, the pods may or may not survive a foreground deletion, because nothing of it is
		// blocking: chapter 17 says why.
		if cascade != orphan && !isRecord && apierrors.IsNotFound(err) {
			g.Expect(d.pods(d.goop)).To(BeEmpty())
		}
	}).WithTimeout(patience).WithPolling(expect.Interval).Should(Succeed())
	if d.object.GetUID() == d.goop.UID && cascade != orphan && len(d.goop.Finalizers) == 0 {
		d.leavesNothing()
	}
}

func (d *deleted) leavesNothing() {
	GinkgoHelper()
	d.leaves()
	Expect(d.history.of(d.goop, v1alpha1.RoleWork)).To(And(HaveLen(d.nodes), HaveEach(1)), "no worker has begun again")
}

// isNotAdopted creates a Goop of the same name. It runs when the user has deleted what was orphaned.
func (d *deleted) isNotAdopted() {
	GinkgoHelper()
	d.gone(d.object)
	another := d.create(d.goop.Name, v1alpha1.GoopSpec{Cmd: endless})
	d.has(another, v1alpha1.ConditionRunning, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
	Consistently(d.ctx, d.uids).WithTimeout(expect.SteadyState).WithPolling(expect.Interval).Should(ConsistOf(d.before()))
	Expect(d.leftovers()).To(ContainElements("*v1.DaemonSet "+theWork.object(d.goop).GetName(), "*v1.ConfigMap "+theRecord.object(d.goop).GetName()))

	d.delete(theWork.object(d.goop), theRecord.object(d.goop))
	d.endedBefore()
	d.running(another, d.nodes)
}

func (d *deleted) isCleanedUp() {
	GinkgoHelper()
	d.isCleanedUpOnce()
	d.leaves()
}

func (d *deleted) isCleanedUpOnce() {
	GinkgoHelper()
	d.gone(d.goop)
	d.cleaned(d.history, d.goop, d.nodes)
	d.hasEvent(d.goop, "Normal", v1alpha1.ReasonCleanedUp)
}

// isCleanedUpButForItsRecord: the record is an orphan. The user can delete it.
func (d *deleted) isCleanedUpButForItsRecord() {
	GinkgoHelper()
	d.isCleanedUpOnce()
	d.leaves("*v1.ConfigMap " + theRecord.object(d.goop).GetName())
	d.delete(theRecord.object(d.goop))
	d.leaves()
}

func (d *deleted) isCleanedUpLater() {
	GinkgoHelper()
	d.delete(d.goop)
	d.isCleanedUp()
}

// runsUnfinishedWorkAgain: no two workers of a node run at the same time, because the pods of a DaemonSet are gone before
// there is another.
func (d *deleted) runsUnfinishedWorkAgain() {
	GinkgoHelper()
	d.endedBefore()
	d.letEnd(d.goop)
	d.complete(d.goop, d.nodes)
	finished := d.old[0].Spec.NodeName + "/0"
	for place, times := range d.history.of(d.goop, v1alpha1.RoleWork) {
		if place == finished {
			Expect(times).To(Equal(1), "%s has run again", place)
		} else {
			Expect(times).To(Equal(2), "%s", place)
		}
	}
}

func (d *deleted) sameWorkersGoOn() {
	GinkgoHelper()
	d.isMadeAgain()
	d.letEnd(d.goop)
	d.complete(d.goop, d.nodes)
	d.expectOnce(d.history, d.goop)
}

func (d *deleted) failsWithoutItsRecord() {
	GinkgoHelper()
	d.failed(d.goop, v1alpha1.ReasonRecordLost)
	until(d.testEnv, d.goop, func(g Gomega, live *v1alpha1.Goop) { g.Expect(live.Status.Running).To(BeZero()) })
	Consistently(func() map[string]int { return d.history.of(d.goop, v1alpha1.RoleWork) }).
		WithTimeout(expect.SteadyState).WithPolling(expect.Interval).Should(And(HaveLen(d.nodes), HaveEach(1)))
}

func (d *deleted) isCleanedUpAgain() {
	GinkgoHelper()
	d.endedBefore()
	d.letCleanUp()
	d.hasEvent(d.goop, "Normal", v1alpha1.ReasonCleanedUp)
	Expect(d.history.of(d.goop, v1alpha1.RoleCleanup)).To(And(HaveLen(d.nodes), HaveEach(2)))
	d.leaves()
}

func (d *deleted) sameCleanupGoesOn() {
	GinkgoHelper()
	d.isMadeAgain()
	d.letCleanUp()
	d.isCleanedUp()
}

// letCleanUp lets the cleanup end on every node, and waits until the Goop is gone.
func (d *deleted) letCleanUp() {
	GinkgoHelper()
	let := map[types.UID]bool{}
	Eventually(d.ctx, func(g Gomega) {
		for _, pod := range d.pods(d.goop) {
			if work := statusOf(&pod); work != nil && work.State.Running != nil && pod.DeletionTimestamp == nil && !let[pod.UID] {
				g.Expect(d.let(&pod)).To(Succeed(), pod.Name)
				let[pod.UID] = true
			}
		}
		err := env.Client.Get(d.ctx, client.ObjectKeyFromObject(d.goop), &v1alpha1.Goop{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%s still exists: %v", d.goop.Name, err)
	}).WithTimeout(patience).WithPolling(expect.Interval).Should(Succeed())
}

// isMadeAgain waits until there is another object of the name.
func (d *deleted) isMadeAgain() {
	GinkgoHelper()
	until(d.testEnv, d.object.DeepCopyObject().(client.Object), func(g Gomega, live client.Object) {
		g.Expect(live.GetUID()).NotTo(Equal(d.object.GetUID()))
	})
}

// endedBefore waits until the pods that there were before the deletion are gone.
func (d *deleted) endedBefore() {
	GinkgoHelper()
	Eventually(d.ctx, d.uids).WithTimeout(patience).WithPolling(expect.Interval).ShouldNot(ContainElement(BeElementOf(d.before())))
}

// uids are those of the pods of the Goop.
func (d *deleted) uids() []types.UID { return uidsOf(d.pods(d.goop)) }

// before are the uids of the pods before the deletion.
func (d *deleted) before() []types.UID { return uidsOf(d.old) }

func uidsOf(pods []corev1.Pod) (uids []types.UID) {
	for _, pod := range pods {
		uids = append(uids, pod.UID)
	}
	return uids
}
