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

func (b *bees) suspend() {
	b.t.Helper()
	b.change(func(spec *v1alpha1.FluxSetupSpec) { spec.Suspend = true })
}

func (b *bees) resume() {
	b.t.Helper()
	b.change(func(spec *v1alpha1.FluxSetupSpec) { spec.Suspend, spec.Attempt = false, spec.Attempt+1 })
}

func TestSuspendedBeforeItBegins(t *testing.T) {
	t.Parallel()
	spec := fluxOf(1)
	spec.Suspend = true
	b := newBees(t, spec)
	b.pass()
	b.expect(v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonOwned)
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
	b.expectNothing()
	b.Expect(b.setup().Spec.Launch).To(BeNil())

	// The time for the start begins when it does.
	b.clock.Step(2 * startupTimeout)
	b.resume()
	b.pass()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionFalse, v1alpha1.ReasonStarting)
}

func TestSuspendedWhileRunningAndResumed(t *testing.T) {
	t.Parallel()
	b := newBees(t, fluxOf(2))
	b.running()
	b.suspend()
	setup := b.pass()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonSuspending)
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionFalse, v1alpha1.ReasonSuspending)
	b.Expect(setup.Status.ReadyRanks).To(BeZero())
	b.Expect(b.job().Finalizers).To(ContainElement(metav1.FinalizerDeleteDependents), "the pods go first")
	b.Expect(b.secret()).NotTo(BeNil(), "the brokers may still look at it")

	// The end of the pods is what was asked for, and no failure.
	b.deletePod(1)
	b.terminate(1, 143, "")
	b.failJob()
	b.clock.Step(2 * startupTimeout)
	b.pass()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonSuspending)

	b.collect()
	setup = b.pass()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
	b.Expect(trueCondition(setup.Status.Conditions, v1alpha1.ConditionFailed)).To(BeNil())
	b.Expect(setup.Status.LeaderPod).To(BeEmpty())
	b.expectNothing()
	b.Expect(b.pass().ResourceVersion).To(Equal(setup.ResourceVersion), "nothing is written at rest")

	b.resume()
	setup = b.pass()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionFalse, v1alpha1.ReasonStarting)
	b.Expect(setup.Spec.Launch.Attempt).To(Equal(int32(2)))
}

// The time to live is over: all goes but what is known.
func TestTearDownAfterTheEnd(t *testing.T) {
	t.Parallel()
	b := newBees(t, fluxOf(1))
	b.running()
	b.terminate(0, 0, "")
	b.judge(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonSuccessPolicy)
	b.pass()
	b.suspend()
	b.pass()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonSuspending)
	b.collect()
	setup := b.pass()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
	b.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
	b.Expect(setup.Status.ExitCode).To(HaveValue(BeZero()))
	b.expectNothing()

	b.clock.Step(time.Hour)
	b.forget()
	b.Expect(b.pass().ResourceVersion).To(Equal(setup.ResourceVersion))
	b.expectNothing()
}

// The command succeeds in the second in which it is suspended. That it did is written before the Job goes, or it
// would be run once more.
func TestEndInTheSecondOfASuspensionIsNotLost(t *testing.T) {
	t.Parallel()
	b := newBees(t, fluxOf(1))
	b.running()
	behind := staleJobs(b)
	b.suspend()
	b.terminate(0, 0, "")
	b.judge(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonSuccessPolicy)
	b.reconciler = b.newReconciler(behind)
	b.pass()
	b.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
	b.Expect(b.job().DeletionTimestamp).To(BeNil())

	b.forget()
	b.pass()
	b.collect()
	b.pass()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
	b.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
	b.expectNothing()
}

// A teardown takes away nothing of anybody else's.
func TestTearDownLeavesForeignObjects(t *testing.T) {
	t.Parallel()
	spec := fluxOf(1)
	spec.Suspend = true
	b := newBees(t, spec)
	foreign := foreigners(b)
	for _, object := range foreign {
		b.Expect(b.client.Create(b.ctx, object)).To(Succeed())
	}
	b.pass()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
	b.Expect(b.job().ResourceVersion).To(Equal(foreign["Job"].GetResourceVersion()))
	b.Expect(b.secret().ResourceVersion).To(Equal(foreign["Secret"].GetResourceVersion()))
	b.Expect(b.configMap().ResourceVersion).To(Equal(foreign["ConfigMap"].GetResourceVersion()))
	b.Expect(fetch[corev1.Service](b).ResourceVersion).To(Equal(foreign["Service"].GetResourceVersion()))
}

// What is about to be deleted is left to the garbage collector.
func TestDeletedIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(*bees){
		"the FluxSetup": func(b *bees) {
			setup := b.setup()
			setup.Finalizers = []string{"example.com/wait"}
			b.Expect(b.client.Update(b.ctx, setup)).To(Succeed())
			b.Expect(b.client.Delete(b.ctx, setup)).To(Succeed())
		},
		"the Flux": func(b *bees) {
			b.flux.Finalizers = []string{"example.com/wait"}
			b.Expect(b.client.Update(b.ctx, b.flux)).To(Succeed())
			b.Expect(b.client.Delete(b.ctx, b.flux)).To(Succeed())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBees(t, fluxOf(1))
			remove(b)
			version := b.setup().ResourceVersion
			b.Expect(b.pass().ResourceVersion).To(Equal(version))
			b.expectNothing()
		})
	}
	b := newBees(t, fluxOf(1))
	b.Expect(b.client.Delete(b.ctx, b.setup())).To(Succeed())
	_, err := b.try()
	b.Expect(err).NotTo(HaveOccurred())
	b.expectNothing()
}
