package e2e

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/shared/e2e"
	"example.com/workbook/shared/expect"
)

const (
	background = metav1.DeletePropagationBackground
	foreground = metav1.DeletePropagationForeground
	orphan     = metav1.DeletePropagationOrphan
)

// The states in which Fluxes, or their dependents, are deleted.
var (
	runs     = state{"a Flux that runs", untilSecond, (*deleted).runs}
	ending   = state{"a Flux whose rank 0 has just ended with 0", sh("exit 0"), (*deleted).ends}
	complete = state{"a Flux that is Complete", sh("exit 0"), (*deleted).isComplete}
)

// untilSecond is a command that runs until its second attempt.
var untilSecond = sh(`test "$ATTEMPT" = 2 || sleep 600`)

var _ = Describe("Deleting", func() {
	e2e.Deletions(env, []e2e.Deletion{
		runs.deletes(theFlux, background, "leaves nothing", (*deleted).leavesNothing),
		runs.deletes(theFlux, foreground, "leaves nothing", (*deleted).leavesNothing),
		runs.deletes(theFlux, orphan, "has the command go on, and another Flux of that name runs only when the FluxSetup is deleted", (*deleted).isNotAdopted),

		runs.deletes(theSetup, background, "fails it, and leaves nothing else", (*deleted).failsWithoutItsSetup),
		runs.deletes(theSetup, foreground, "fails it, and leaves nothing else", (*deleted).failsWithoutItsSetup),
		runs.deletes(theSetup, orphan, "fails it, and has the command go on", (*deleted).failsAndGoesOn),

		runs.deletes(theJob, background, "restarts it", (*deleted).isRestarted),
		runs.deletes(theJob, foreground, "restarts it", (*deleted).isRestarted),
		runs.deletes(theJob, orphan, "restarts it when the orphaned pods are gone", (*deleted).isRestartedAfterTheOrphans),

		onlyUp(ending.deletes(theJob, background, "completes it", (*deleted).completesOnce)),
		onlyUp(ending.deletes(theJob, foreground, "completes it", (*deleted).completesOnce)),
		onlyUp(ending.deletes(theJob, orphan, "completes it", (*deleted).completesOnce)),

		complete.deletes(theJob, background, "changes nothing else", (*deleted).staysComplete),
		complete.deletes(theJob, foreground, "changes nothing else", (*deleted).staysComplete),
		complete.deletes(theJob, orphan, "changes nothing else", (*deleted).staysComplete),

		runs.deletes(theFiles, background, "has Service and ConfigMap made again, and the command goes on", (*deleted).goesOn),
		runs.deletes(theFiles, foreground, "has Service and ConfigMap made again, and the command goes on", (*deleted).goesOn),
		runs.deletes(theFiles, orphan, "has Service and ConfigMap made again, and the command goes on", (*deleted).goesOn),
	})
})

// onlyUp: nothing observes the end of rank 0 while the operator is down.
func onlyUp(deletion e2e.Deletion) e2e.Deletion {
	deletion.OnlyUp = true
	return deletion
}

// target is what is deleted: a Flux, or dependents of it.
type target struct {
	name    string
	objects func(*v1alpha1.Flux) []client.Object
}

var (
	theFlux  = target{"", func(flux *v1alpha1.Flux) []client.Object { return []client.Object{flux.DeepCopy()} }}
	theSetup = target{"the FluxSetup of ", func(flux *v1alpha1.Flux) []client.Object { return []client.Object{setupOf(flux)} }}
	theJob   = target{"the Job of ", func(flux *v1alpha1.Flux) []client.Object { return []client.Object{jobOf(flux)} }}
	theFiles = target{"Service, ConfigMap and Secret of ", func(flux *v1alpha1.Flux) []client.Object {
		return []client.Object{serviceOf(flux), configMapOf(flux), secretOf(flux)}
	}}
)

// state is a Flux with a command, and the state in which it, or a dependent, is deleted.
type state struct {
	name    string
	command []string
	reach   func(*deleted)
}

// deletes is the deletion of a Flux in this state, or of dependents of it.
func (s state) deletes(which target, cascade metav1.DeletionPropagation, outcome string, check func(*deleted)) e2e.Deletion {
	return e2e.Deletion{
		Name: fmt.Sprintf("%s%s, with --cascade=%s, %s", which.name, s.name, strings.ToLower(string(cascade)), outcome),
		Begin: func(ctx SpecContext) e2e.DeletionSteps {
			w := newTestEnv(ctx)
			d := &deleted{testEnv: w, history: w.record(), which: which, cascade: cascade}
			d.flux = w.create("flux", v1alpha1.FluxSpec{Command: s.command, Size: 2, MaxRestarts: 1, Template: withAttempt()})
			return e2e.DeletionSteps{
				Reach:   func() { s.reach(d); d.remember() },
				Delete:  d.deletes,
				Collect: d.isCollected,
				Expect:  func() { check(d) },
			}
		},
	}
}

// deleted is what is deleted, and what there was at that time.
type deleted struct {
	*testEnv
	history *history
	which   target
	cascade metav1.DeletionPropagation
	flux    *v1alpha1.Flux
	objects []client.Object
	// old are the uids of the pods of that time.
	old []types.UID
}

func (d *deleted) runs() {
	GinkgoHelper()
	d.running(d.flux)
}

// ends waits for the end of rank 0, and for no more.
func (d *deleted) ends() {
	GinkgoHelper()
	d.begin(d.flux)
	d.endLeader(d.flux, 0, "")
	until(d.testEnv, d.leader(d.flux), func(g Gomega, pod *corev1.Pod) { g.Expect(hasEnded(pod)).To(BeTrue()) })
}

func (d *deleted) isComplete() {
	GinkgoHelper()
	d.complete(d.flux)
}

func (d *deleted) remember() {
	GinkgoHelper()
	d.objects, d.old = d.which.objects(d.flux), d.uids()
	d.there(d.objects...)
}

func (d *deleted) deletes() {
	GinkgoHelper()
	for _, object := range d.objects {
		Expect(env.Client.Delete(d.ctx, object.DeepCopyObject().(client.Object), client.PropagationPolicy(d.cascade))).To(Succeed())
	}
}

// isCollected waits until the objects are gone, and their dependents, or the owner references of those.
func (d *deleted) isCollected() {
	GinkgoHelper()
	for _, object := range d.objects {
		d.gone(object.DeepCopyObject().(client.Object))
	}
	switch {
	case d.cascade == orphan:
	case d.which.name == theFlux.name:
		d.leavesNothing()
	case d.which.name == theSetup.name:
		d.leaves("*v1alpha1.Flux flux")
	case d.which.name == theJob.name:
		d.noPods(d.flux, patience)
	}
}

func (d *deleted) leavesNothing() {
	GinkgoHelper()
	d.leaves()
	d.expectOnce(d.history, d.flux, 1)
}

// isNotAdopted creates a Flux of the same name.
func (d *deleted) isNotAdopted() {
	GinkgoHelper()
	d.gone(d.objects[0].DeepCopyObject().(client.Object))
	another := d.create(d.flux.Name, v1alpha1.FluxSpec{Command: sh("sleep 600"), Size: 2})
	d.has(another, v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
	d.keepsItsPods()
	d.delete(setupOf(d.flux))
	d.endedBefore()
	d.running(another)
}

func (d *deleted) failsWithoutItsSetup() {
	GinkgoHelper()
	d.failed(d.flux, v1alpha1.ReasonSetupLost)
	d.leaves("*v1alpha1.Flux flux")
	d.expectOnce(d.history, d.flux, 1)
}

// failsAndGoesOn: Job and Service are orphans. The user can delete them.
func (d *deleted) failsAndGoesOn() {
	GinkgoHelper()
	d.failed(d.flux, v1alpha1.ReasonSetupLost)
	d.keepsItsPods()
	d.delete(jobOf(d.flux), serviceOf(d.flux))
	d.leaves("*v1alpha1.Flux flux")
	d.expectOnce(d.history, d.flux, 1)
}

func (d *deleted) isRestarted() {
	GinkgoHelper()
	d.attempt(d.flux, 2)
	d.complete(d.flux)
	d.expectOnce(d.history, d.flux, 2)
}

// isRestartedAfterTheOrphans: the user deletes the pods.
func (d *deleted) isRestartedAfterTheOrphans() {
	GinkgoHelper()
	d.has(d.flux, v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForPods)
	d.keepsItsPods()
	for _, pod := range d.pods(d.flux) {
		d.delete(&pod)
	}
	d.isRestarted()
}

func (d *deleted) completesOnce() {
	GinkgoHelper()
	d.has(d.flux, v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
	Expect(d.flux.Status.ExitCode).To(HaveValue(BeZero()))
	d.expectOnce(d.history, d.flux, 1)
}

func (d *deleted) staysComplete() {
	GinkgoHelper()
	d.gone(jobOf(d.flux))
	always(d.testEnv, d.flux, func(g Gomega, flux *v1alpha1.Flux) {
		condition(g, flux.Status.Conditions, v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
		g.Expect(d.leftovers()).NotTo(ContainElement(HavePrefix("*v1.Job ")))
	})
	d.expectOnce(d.history, d.flux, 1)
}

// goesOn: the brokers have read the files, and need the Secret no more.
func (d *deleted) goesOn() {
	GinkgoHelper()
	for _, object := range d.objects[:2] {
		until(d.testEnv, object.DeepCopyObject().(client.Object), func(g Gomega, live client.Object) {
			g.Expect(live.GetUID()).NotTo(Equal(object.GetUID()))
		})
	}
	d.keepsItsPods()
	d.has(d.flux, v1alpha1.ConditionRunning, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
	d.expectOnce(d.history, d.flux, 1)
}

// keepsItsPods asserts that the pods of the time of the deletion go on, and no others begin.
func (d *deleted) keepsItsPods() {
	GinkgoHelper()
	Consistently(d.ctx, func(g Gomega) {
		g.Expect(d.uids()).To(ConsistOf(d.old))
		g.Expect(d.pods(d.flux)).To(HaveEach(HaveField("DeletionTimestamp", BeNil())))
	}).WithTimeout(expect.SteadyState).WithPolling(expect.Interval).Should(Succeed())
}

// endedBefore waits until the pods of the time of the deletion are gone.
func (d *deleted) endedBefore() {
	GinkgoHelper()
	Eventually(d.ctx, d.uids).WithTimeout(patience).WithPolling(expect.Interval).ShouldNot(ContainElement(BeElementOf(d.old)))
}

// leaves waits until the namespace has only these objects.
func (d *deleted) leaves(objects ...any) {
	GinkgoHelper()
	Eventually(d.leftovers).WithTimeout(patience).WithPolling(expect.Interval).Should(ConsistOf(objects...))
}

// uids are those of the pods of the Flux.
func (d *deleted) uids() (uids []types.UID) {
	for _, pod := range d.pods(d.flux) {
		uids = append(uids, pod.UID)
	}
	return uids
}
