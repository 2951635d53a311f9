package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/api/v1alpha1"
)

func (b *setupTestEnv) suspend() {
	b.t.Helper()
	b.change(func(spec *v1alpha1.FluxSetupSpec) { spec.Suspend = true })
}

func (b *setupTestEnv) resume() {
	b.t.Helper()
	b.change(func(spec *v1alpha1.FluxSetupSpec) { spec.Suspend, spec.Attempt = false, spec.Attempt+1 })
}

func TestSuspendedBeforeItBegins(t *testing.T) {
	t.Parallel()
	spec := fluxOf(1)
	spec.Suspend = true
	b := newSetupTestEnv(t, spec)
	b.reconcile()
	b.expect(v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonOwned)
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
	b.expectNothing()
	b.Expect(b.setup().Spec.Launch).To(BeNil())

	// The time to start counts from the launch.
	b.clock.Step(2 * startupTimeout)
	b.flux.Spec.Suspend = false
	b.Expect(b.client.Update(b.ctx, b.flux)).To(Succeed())
	b.resume()
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionFalse, v1alpha1.ReasonStarting)
}

func TestSuspendedWhileRunningAndResumed(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(2))
	b.running()
	b.suspend()
	setup := b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonSuspending)
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionFalse, v1alpha1.ReasonSuspending)
	b.Expect(setup.Status.ReadyRanks).To(BeZero())
	b.Expect(b.job().Finalizers).To(ContainElement(metav1.FinalizerDeleteDependents), "the pods go first")
	b.Expect(b.secret()).NotTo(BeNil(), "the brokers may still need it")

	// The pods end because of the suspension: that is not a failure.
	b.deletePod(1)
	b.terminate(1, 143, "")
	b.failJob()
	b.clock.Step(2 * startupTimeout)
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonSuspending)

	b.collect()
	setup = b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
	b.Expect(trueCondition(setup.Status.Conditions, v1alpha1.ConditionFailed)).To(BeNil())
	b.Expect(setup.Status.LeaderPod).To(BeEmpty())
	b.expectNothing()
	b.Expect(b.reconcile().ResourceVersion).To(Equal(setup.ResourceVersion), "nothing is written in steady state")

	b.resume()
	setup = b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionFalse, v1alpha1.ReasonStarting)
	b.Expect(setup.Spec.Launch.Attempt).To(Equal(int32(2)))
}

// The TTL has expired: the dependents are deleted, and the status stays.
func TestTearDownAfterTheEnd(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	b.terminate(0, 0, "")
	b.finishJob(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonSuccessPolicy)
	b.reconcile()
	b.suspend()
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonSuspending)
	b.collect()
	setup := b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
	b.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
	b.Expect(setup.Status.ExitCode).To(HaveValue(BeZero()))
	b.expectNothing()

	b.clock.Step(time.Hour)
	b.forget()
	b.Expect(b.reconcile().ResourceVersion).To(Equal(setup.ResourceVersion))
	b.expectNothing()
}

// The command succeeds in the second in which it is suspended. The success is written before the Job is deleted:
// otherwise the command would run again.
func TestEndInTheSecondOfASuspensionIsNotLost(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	behind := staleJobs(b)
	b.suspend()
	b.terminate(0, 0, "")
	b.finishJob(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonSuccessPolicy)
	b.reconciler = b.newReconciler(behind)
	b.reconcile()
	b.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
	b.Expect(b.job().DeletionTimestamp).To(BeNil())

	b.forget()
	b.reconcile()
	b.collect()
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
	b.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
	b.expectNothing()
}

// The command has succeeded, and is suspended before the Job controller has counted that: an injected container still
// runs in the pod, or the node is busy. The command is not run again, whether the operator observed the end or was
// down.
func TestSuccessThatWasNotCountedIsNotLostWithASuspension(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]bool{"observed": false, "while the operator was down": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newSetupTestEnv(t, fluxOf(2))
			b.running()
			b.terminateBroker(0, "")
			b.suspend()
			if forget {
				b.forget()
			}
			b.reconcile()
			b.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
			b.Expect(b.job().DeletionTimestamp).To(BeNil(), "the end is written first")

			b.reconcile()
			b.collect()
			b.reconcile()
			b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
			b.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
			b.expectNothing()
		})
	}
}

// The command succeeds while its Job is being deleted because of a suspension.
func TestSuccessDuringATearDownIsNotLost(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	b.suspend()
	b.reconcile()
	b.Expect(b.job().DeletionTimestamp).NotTo(BeNil())
	b.terminate(0, 0, "")
	b.reconcile()
	b.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
	b.collect()
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
	b.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
	b.expectNothing()
}

// A teardown deletes nothing that the FluxSetup does not own.
func TestTearDownLeavesWhatIsNotOwned(t *testing.T) {
	t.Parallel()
	spec := fluxOf(1)
	spec.Suspend = true
	b := newSetupTestEnv(t, spec)
	other := notOwnedObjects(b)
	for _, object := range other {
		b.Expect(b.client.Create(b.ctx, object)).To(Succeed())
	}
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
	b.Expect(b.job().ResourceVersion).To(Equal(other["Job"].GetResourceVersion()))
	b.Expect(b.secret().ResourceVersion).To(Equal(other["Secret"].GetResourceVersion()))
	b.Expect(b.configMap().ResourceVersion).To(Equal(other["ConfigMap"].GetResourceVersion()))
	b.Expect(fetch[corev1.Service](b).ResourceVersion).To(Equal(other["Service"].GetResourceVersion()))
}

// Another client deletes the FluxSetup while the command runs, and a finalizer keeps it: the command is ended as if the
// garbage collector had deleted the Job. If the Job is to be orphaned, it still runs.
func TestFluxSetupBeingDeletedRunsNothing(t *testing.T) {
	t.Parallel()
	for finalizer, runs := range map[string]bool{"example.com/wait": false, metav1.FinalizerOrphanDependents: true} {
		t.Run(finalizer, func(t *testing.T) {
			t.Parallel()
			b := newSetupTestEnv(t, fluxOf(1))
			b.running()
			setup := b.setup()
			setup.Finalizers = []string{finalizer}
			b.Expect(b.client.Update(b.ctx, setup)).To(Succeed())
			b.Expect(b.client.Delete(b.ctx, setup)).To(Succeed())
			b.reconcile()
			b.Expect(b.job().DeletionTimestamp.IsZero()).To(Equal(runs))
		})
	}
}

// A FluxSetup that is resumed before its suspension was observed still has a running Job of the previous attempt. That
// Job is deleted too if the FluxSetup is deleted and a finalizer keeps it.
func TestFluxSetupBeingDeletedRunsNothingOfAnEarlierAttempt(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	b.suspend()
	b.resume()
	setup := b.setup()
	setup.Finalizers = []string{"example.com/wait"}
	b.Expect(b.client.Update(b.ctx, setup)).To(Succeed())
	b.Expect(b.client.Delete(b.ctx, setup)).To(Succeed())
	b.reconcile()
	b.Expect(b.job().DeletionTimestamp).NotTo(BeNil())
}

// Objects that are being deleted are left to the garbage collector.
func TestDeletedIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(*setupTestEnv){
		"the FluxSetup": func(b *setupTestEnv) {
			setup := b.setup()
			setup.Finalizers = []string{"example.com/wait"}
			b.Expect(b.client.Update(b.ctx, setup)).To(Succeed())
			b.Expect(b.client.Delete(b.ctx, setup)).To(Succeed())
		},
		"the Flux": func(b *setupTestEnv) {
			b.flux.Finalizers = []string{"example.com/wait"}
			b.Expect(b.client.Update(b.ctx, b.flux)).To(Succeed())
			b.Expect(b.client.Delete(b.ctx, b.flux)).To(Succeed())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newSetupTestEnv(t, fluxOf(1))
			remove(b)
			version := b.setup().ResourceVersion
			b.Expect(b.reconcile().ResourceVersion).To(Equal(version))
			b.expectNothing()
		})
	}
	b := newSetupTestEnv(t, fluxOf(1))
	b.Expect(b.client.Delete(b.ctx, b.setup())).To(Succeed())
	_, err := b.try()
	b.Expect(err).NotTo(HaveOccurred())
	b.expectNothing()
}
