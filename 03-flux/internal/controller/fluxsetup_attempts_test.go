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

// The Job is deleted with --cascade=orphan: the garbage collector removes the owner from its pods, which run on.
func TestPodsWithoutAnOwnerAreWaitedFor(t *testing.T) {
	t.Parallel()
	b := newBees(t, fluxOf(1))
	b.running()
	pod := b.pod(0)
	pod.OwnerReferences = nil
	b.Expect(b.client.Update(b.ctx, pod)).To(Succeed())
	b.Expect(b.client.Delete(b.ctx, b.job(), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	b.pass()
	b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonJobLost)

	b.restart()
	b.pass()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonWaitingForPods)
	b.Expect(b.jobs()).To(BeEmpty(), "two attempts would run at once")

	b.suspend()
	b.pass()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonSuspending)
}

// A FluxSetup is not launched under a Flux that is over, nor under one that has another FluxSetup.
func TestLaunchAsksTheFlux(t *testing.T) {
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
			b := newBees(t, fluxOf(1))
			change(&b.flux.Status, b.setup())
			b.Expect(b.client.Status().Update(b.ctx, b.flux)).To(Succeed())
			b.pass()
			b.expectNothing()
			b.Expect(b.setup().Spec.Launch).To(BeNil())
			configured := conditionOf(b.setup().Status.Conditions, v1alpha1.ConditionConfigured)
			b.Expect(configured.Reason).To(BeElementOf(v1alpha1.ReasonFinished, v1alpha1.ReasonNotOwned))
		})
	}
}

// The command succeeds between the read of the Job and its deletion: the evidence is not deleted with it.
func TestJobIsDeletedOnlyAsItWasObserved(t *testing.T) {
	t.Parallel()
	b := newBees(t, fluxOf(1))
	b.pass()
	b.startPods()
	b.clock.Step(startupTimeout)
	b.reconciler = b.newReconciler(b.through(interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
			b.judge(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonSuccessPolicy)
			return c.Delete(ctx, object, opts...)
		},
	}))
	_, _ = b.try()
	b.Expect(b.job().DeletionTimestamp).To(BeNil())
}

// Rank 0 succeeds, and before the Job controller says so another pod fails, or the deadline passes.
func TestRankZeroDecides(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{batchv1.JobReasonBackoffLimitExceeded, batchv1.JobReasonDeadlineExceeded} {
		b := newBees(t, fluxOf(2))
		b.running()
		b.terminate(0, 0, "")
		b.terminate(1, 1, "")
		b.judge(batchv1.JobFailureTarget, reason)
		b.pass()
		b.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
	}
}

// The ConfigMap that an older operator has made for the first attempt is not that of the second.
func TestEachAttemptHasItsOwnFiles(t *testing.T) {
	t.Parallel()
	b := newBees(t, fluxOf(1))
	b.running()
	files := b.configMap()
	secret := b.secret()
	b.terminate(0, 1, "")
	b.failJob()
	b.pass()
	b.restart()
	b.pass()
	b.collect()
	b.pass()
	b.Expect(b.configMap().UID).NotTo(Equal(files.UID))
	b.Expect(b.secret().Data).NotTo(Equal(secret.Data))
}

// The operator is upgraded between two attempts: nothing of the files of the first is used by the second. The status
// has the hash of those that the brokers of the attempt read.
func TestConfigHashIsThatOfTheJob(t *testing.T) {
	t.Parallel()
	b := newBees(t, fluxOf(1))
	b.running()
	job := b.job()
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, annotationConfigHash, "of-an-older-version")
	b.Expect(b.client.Update(b.ctx, job)).To(Succeed())
	b.Expect(b.pass().Status.ConfigHash).To(Equal("of-an-older-version"))

	// Its ConfigMap is lost, and this version would write other files.
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
	b.pass()
	b.collect()
	b.Expect(b.pass().Status.ConfigHash).To(Equal(b.job().Annotations[annotationConfigHash]))
	b.Expect(b.configMap().Data).To(Equal(clusterOf(b.setup()).Files()))
}

// Another writer suspends the Job, or scales it: the attempt is over, even if that is undone.
func TestJobThatIsChangedEndsTheAttempt(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*batchv1.JobSpec){
		"suspended": func(spec *batchv1.JobSpec) { spec.Suspend = new(true) },
		"scaled":    func(spec *batchv1.JobSpec) { spec.Parallelism = new(int32(0)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBees(t, fluxOf(1))
			b.pass()
			b.startPods()
			job := b.job()
			change(&job.Spec)
			b.Expect(b.client.Update(b.ctx, job)).To(Succeed())
			b.pass()
			b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonJobChanged)
			b.Expect(b.job().DeletionTimestamp).NotTo(BeNil())
		})
	}
}

// The Secret is deleted before a pod has mounted it. It is not created again, because another pod may have mounted it;
// the failure says what is missing.
func TestLostSecretIsReported(t *testing.T) {
	t.Parallel()
	b := newBees(t, fluxOf(2))
	b.pass()
	b.startPods()
	b.Expect(b.client.Delete(b.ctx, b.secret())).To(Succeed())
	b.pass()
	b.Expect(b.secret()).To(BeNil())
	b.clock.Step(startupTimeout)
	_, _ = b.try()
	b.Expect(b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonConfigLost)).To(HaveSuffix("Secret bees-1 is gone"))
}
