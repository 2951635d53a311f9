package controller

import (
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// anotherJob creates a running Job that the operator did not create, and that has the name of the first attempt's Job.
func anotherJob(b *setupTestEnv, labels map[string]string) *batchv1.Job {
	b.t.Helper()
	spec := desiredJob(firstSetup(b.flux)).Spec
	spec.Suspend, spec.Template.Labels = nil, labels
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "bees-1", Namespace: b.namespace, Labels: labels}, Spec: spec}
	b.Expect(b.client.Create(b.ctx, job)).To(Succeed())
	return job
}

// namedIn is a launch that names the Job as that of the first attempt.
func namedIn(b *setupTestEnv, job *batchv1.Job) *v1alpha1.Launch {
	return &v1alpha1.Launch{Attempt: 1, Time: metav1.NewTime(b.clock.Now()), JobUID: string(job.UID)}
}

// A user who may create FluxSetups can write any uid into one. That must not delete the Job.
func TestFluxSetupMadeByHandDeletesNoJob(t *testing.T) {
	t.Parallel()
	for name, labelled := range map[string]bool{"a Job that was never owned": false, "a Job that an earlier FluxSetup orphaned": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &setupTestEnv{testEnv: newTestEnv(t), t: t}
			b.reconciler = b.newReconciler(b.client)
			b.flux = &v1alpha1.Flux{ObjectMeta: metav1.ObjectMeta{Name: "bees", Namespace: b.namespace}, Spec: fluxOf(1)}
			setup := firstSetup(b.flux)
			var labels map[string]string
			if labelled {
				labels = attemptLabels(setup)
			}
			job := anotherJob(b, labels)
			setup.OwnerReferences = nil
			setup.Finalizers = []string{"example.com/wait"}
			setup.Spec.Launch = namedIn(b, job)
			b.Expect(b.client.Create(b.ctx, setup)).To(Succeed())
			b.reconcile()
			b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonNotOwned)
			b.Expect(b.client.Delete(b.ctx, setup)).To(Succeed())
			b.reconcile()
			b.Expect(b.job()).To(Equal(job), "it is left unchanged")
			configured := conditionOf(b.setup().Status.Conditions, v1alpha1.ConditionConfigured)
			b.Expect(configured.Reason).To(Equal(v1alpha1.ReasonNameConflict))
			b.Expect(configured.Message).To(Equal("Job bees-1 already exists and has a different owner, or none: it is left unchanged"))
		})
	}
}

// A client that may write the FluxSetup of a Flux names another Job before the operator names its own: the operator
// does not use it either.
func TestJobThatIsOnlyNamedInTheLaunchIsNotTheFluxSetups(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	job := anotherJob(b, nil)
	b.change(func(spec *v1alpha1.FluxSetupSpec) { spec.ActiveDeadlineSeconds = new(int64(1)) })
	setup := b.setup()
	setup.Spec.Launch = namedIn(b, job)
	b.Expect(b.client.Update(b.ctx, setup, client.FieldOwner("another-client"))).To(Succeed())
	b.reconcile()
	b.Expect(b.job()).To(Equal(job), "it gets neither an owner nor a deadline")
	b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonJobLost)
	b.suspend()
	b.reconcile()
	b.Expect(b.job()).To(Equal(job), "it is not deleted")
}

// A Job without owner and labels counts as not owned, even if another client has removed them.
func TestJobWithoutOwnerAndLabelsIsLeftUnchanged(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	job := b.job()
	job.OwnerReferences, job.Labels = nil, map[string]string{"app": "theirs"}
	b.Expect(b.client.Update(b.ctx, job)).To(Succeed())
	b.reconcile()
	b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonJobLost)
	b.suspend()
	b.reconcile()
	b.Expect(b.job()).To(Equal(job))
}

// Another client ends the suspension of the FluxSetup, and not that of its Flux, which suspends it again: nothing runs
// meanwhile, and the attempt that was suspended has not failed.
func TestFluxSetupOfASuspendedFluxRunsNothing(t *testing.T) {
	t.Parallel()
	unsuspend := func(b *setupTestEnv) {
		setup := b.setup()
		setup.Spec.Suspend = false
		b.Expect(b.client.Update(b.ctx, setup, client.FieldOwner("another"))).To(Succeed())
		_, _ = b.try()
	}
	suspendFlux := func(b *setupTestEnv) {
		b.flux.Spec.Suspend = true
		b.Expect(b.client.Update(b.ctx, b.flux)).To(Succeed())
		b.suspend()
	}
	t.Run("before it begins", func(t *testing.T) {
		t.Parallel()
		spec := fluxOf(1)
		spec.Suspend = true
		b := newSetupTestEnv(t, spec)
		b.reconcile()
		unsuspend(b)
		b.expectNothing()
	})
	for name, collected := range map[string]bool{"while its pods end": false, "when nothing is left": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newSetupTestEnv(t, fluxOf(1))
			b.running()
			suspendFlux(b)
			b.reconcile()
			if collected {
				b.collect()
				b.reconcile()
			}
			unsuspend(b)
			b.Expect(trueCondition(b.setup().Status.Conditions, v1alpha1.ConditionFailed)).To(BeNil())
			b.suspend()
			if !collected {
				b.collect()
			}
			b.reconcile()
			b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
		})
	}
}
