package controller

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// The Job is deleted with --cascade=orphan: the garbage collector removes the owner reference from its pods, which
// still run.
func TestPodsWithoutAnOwnerAreWaitedFor(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	pod := b.pod(0)
	pod.OwnerReferences = nil
	b.Expect(b.client.Update(b.ctx, pod)).To(Succeed())
	b.Expect(b.client.Delete(b.ctx, b.job(), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	b.reconcile()
	b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonJobLost)

	b.restart()
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonWaitingForPods)
	b.Expect(b.jobs()).To(BeEmpty(), "two attempts would run at once")

	b.suspend()
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonSuspending)
}

// The pods of a Job that was deleted with --cascade=orphan have ended. They stay until a user deletes them, and block neither
// the next attempt nor a suspension.
func TestPodsWithoutAnOwnerThatHaveEndedAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	for _, exitCode := range []int32{0, 1} {
		b := newSetupTestEnv(t, fluxOf(2))
		b.running()
		for rank := range b.pods() {
			pod := b.pod(rank)
			pod.OwnerReferences = nil
			b.Expect(b.client.Update(b.ctx, pod)).To(Succeed())
		}
		b.Expect(b.client.Delete(b.ctx, b.job(), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		b.reconcile()
		b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonJobLost)
		b.terminate(0, exitCode, "")
		b.restart()
		b.reconcile()
		b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonWaitingForPods)

		b.terminate(1, exitCode, "")
		b.reconcile()
		b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
		b.suspend()
		b.reconcile()
		b.collect()
		b.reconcile()
		b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
		b.Expect(b.pods()).To(HaveLen(2), "they are the user's")
	}
}

// The next attempt is launched, and waits for the pods of the previous one. The back-off counts from its start, otherwise a
// command that fails immediately would be restarted without a delay.
func TestBackOffCountsFromTheStart(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	b.terminate(0, 3, "")
	b.failJob()
	b.reconcile()
	b.restart()
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonWaitingForPods)

	b.clock.Step(DefaultBackOff.after(1))
	b.collect()
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
	b.Expect(DefaultBackOff.left(b.setup(), b.clock.Now())).To(Equal(DefaultBackOff.after(1)))
}

// A FluxSetup is not launched if its Flux has ended, or has another FluxSetup.
func TestLaunchReadsTheFlux(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*v1alpha1.FluxStatus, *v1alpha1.FluxSetup){
		"it is Complete": func(status *v1alpha1.FluxStatus, setup *v1alpha1.FluxSetup) {
			status.SetupRef = &v1alpha1.SetupReference{Name: setup.Name, UID: string(setup.UID)}
			status.Conditions = []metav1.Condition{{
				Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonCommandSucceeded, LastTransitionTime: metav1.Now(),
			}}
		},
		"it has another FluxSetup": func(status *v1alpha1.FluxStatus, setup *v1alpha1.FluxSetup) {
			status.SetupRef = &v1alpha1.SetupReference{Name: setup.Name, UID: "another"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newSetupTestEnv(t, fluxOf(1))
			change(&b.flux.Status, b.setup())
			b.Expect(b.client.Status().Update(b.ctx, b.flux)).To(Succeed())
			b.reconcile()
			b.expectNothing()
			b.Expect(b.setup().Spec.Launch).To(BeNil())
			configured := conditionOf(b.setup().Status.Conditions, v1alpha1.ConditionConfigured)
			b.Expect(configured.Reason).To(BeElementOf(v1alpha1.ReasonFinished, v1alpha1.ReasonNotOwned))
		})
	}
}

// A FluxSetup is deleted before the Flux has recorded it, and the Flux controller creates another one. Only the
// recorded one is launched, even if the cache still shows the other record: the command runs once.
func TestNothingRunsBeforeTheFluxHasRecordedIt(t *testing.T) {
	t.Parallel()
	b := newEmptySetupTestEnv(t)
	b.flux = b.makeFlux(fluxOf(1))
	b.applySetup(firstSetup(b.flux))
	version := b.setup().ResourceVersion
	b.Expect(b.reconcile().ResourceVersion).To(Equal(version))
	b.expectNothing()

	b.Expect(b.client.Delete(b.ctx, b.setup())).To(Succeed())
	b.applySetup(firstSetup(b.flux))
	b.recordSetup()
	cached := stale[v1alpha1.Flux](b, "bees")
	b.flux.Status.SetupRef = nil
	b.Expect(b.client.Status().Update(b.ctx, b.flux)).To(Succeed())
	b.reconciler = b.newReconciler(cached)
	_, err := b.try()
	b.Expect(isStale(err)).To(BeTrue())
	b.expectNothing()

	b.recordSetup()
	b.forget()
	b.reconcile()
	b.Expect(b.jobs()).To(HaveLen(1))
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
}

// The command succeeds between the read of the Job and its deletion: the Job is not deleted, because it is the
// evidence.
func TestJobIsDeletedOnlyAsItWasObserved(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.reconcile()
	b.startPods()
	b.clock.Step(startupTimeout)
	b.use(b.through(interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
			b.finishJob(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonSuccessPolicy)
			return c.Delete(ctx, object, opts...)
		},
	}))
	_, _ = b.try()
	b.Expect(b.job().DeletionTimestamp).To(BeNil())
}

// Rank 0 succeeds. Before the Job controller reports that, another pod fails, or the deadline is exceeded.
func TestRankZeroDecides(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{batchv1.JobReasonBackoffLimitExceeded, batchv1.JobReasonDeadlineExceeded} {
		b := newSetupTestEnv(t, fluxOf(2))
		b.running()
		b.terminate(0, 0, "")
		b.terminate(1, 1, "")
		b.finishJob(batchv1.JobFailureTarget, reason)
		b.reconcile()
		b.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
	}
}

// The second attempt uses neither the ConfigMap nor the Secret of the first one.
func TestEachAttemptHasItsOwnFiles(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	files := b.configMap()
	secret := b.secret()
	b.terminate(0, 1, "")
	b.failJob()
	b.reconcile()
	b.restart()
	b.reconcile()
	b.collect()
	b.reconcile()
	b.Expect(b.configMap().UID).NotTo(Equal(files.UID))
	b.Expect(b.secret().Data).NotTo(Equal(secret.Data))
}

// The operator is upgraded between two attempts: the second one does not use the files of the first one. The status has
// the hash of the files that the brokers of the current attempt read.
func TestConfigHashIsThatOfTheJob(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	job := b.job()
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, annotationConfigHash, "of-an-older-version")
	b.Expect(b.client.Update(b.ctx, job)).To(Succeed())
	b.Expect(b.reconcile().Status.ConfigHash).To(Equal("of-an-older-version"))

	// The ConfigMap is lost, and this version of the operator would write other files.
	b.Expect(b.client.Delete(b.ctx, b.configMap())).To(Succeed())
	_, err := b.try()
	b.Expect(err).To(HaveOccurred())
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonConfigLost)
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
	b.Expect(b.configMap()).To(BeNil())

	b.terminate(0, 1, "")
	b.failJob()
	_, _ = b.try()
	b.restart()
	b.reconcile()
	b.collect()
	b.Expect(b.reconcile().Status.ConfigHash).To(Equal(b.job().Annotations[annotationConfigHash]))
	b.Expect(b.configMap().Data).To(Equal(clusterOf(b.setup()).Files()))
}

// Another writer suspends the Job, scales it, or allows it to replace pods: the attempt fails, even if the change is
// reverted. A Job that has lost the mark that it was started counts as started.
func TestJobThatIsChangedEndsTheAttempt(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*batchv1.Job){
		"suspended": func(job *batchv1.Job) { job.Spec.Suspend = new(true) },
		"scaled":    func(job *batchv1.Job) { job.Spec.Parallelism = new(int32(0)) },
		"retried":   func(job *batchv1.Job) { job.Spec.BackoffLimit = new(int32(6)) },
		"suspended without its mark": func(job *batchv1.Job) {
			delete(job.Annotations, annotationStarted)
			job.Spec.Suspend = new(true)
		},
		"retried without its mark": func(job *batchv1.Job) {
			delete(job.Annotations, annotationStarted)
			job.Spec.BackoffLimit = new(int32(6))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newSetupTestEnv(t, fluxOf(1))
			b.reconcile()
			b.startPods()
			job := b.job()
			change(job)
			b.Expect(b.client.Update(b.ctx, job)).To(Succeed())
			b.reconcile()
			b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonJobChanged)
			b.Expect(b.job().DeletionTimestamp).NotTo(BeNil())
		})
	}
}

// The Secret is deleted before a pod has mounted it. It is not created again, because another pod may have mounted it.
// The failure names the Secret.
func TestLostSecretIsReported(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(2))
	b.reconcile()
	b.startPods()
	b.Expect(b.client.Delete(b.ctx, b.secret())).To(Succeed())
	b.reconcile()
	b.Expect(b.secret()).To(BeNil())
	b.Expect(b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)).To(Equal("the Job was started"), "Secrets are not watched")
	b.clock.Step(startupTimeout)
	_, _ = b.try()
	b.Expect(b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonConfigLost)).To(HaveSuffix("Secret bees-1 was deleted"))
}

// Another writer resumes the Job before the operator starts it. It may have run without its dependents, and it is not
// started a second time.
func TestJobStartedByAnotherWriterIsChanged(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	job := desiredJob(b.setup())
	job.Spec.Suspend = new(false)
	b.Expect(b.client.Create(b.ctx, job)).To(Succeed())
	b.reconcile()
	b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonJobChanged)
	b.Expect(b.setup().Spec.Launch.JobUID).To(Equal(string(job.UID)))
	b.Expect(b.job().DeletionTimestamp).NotTo(BeNil())
}
