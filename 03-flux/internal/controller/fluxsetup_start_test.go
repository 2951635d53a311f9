package controller

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// A replica of the operator that is no longer the leader sends its requests late, while the next attempt runs.
func TestLateWritesOfAnEarlierAttempt(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	first := b.setup()
	b.running()
	firstJob := b.job()
	b.terminate(0, 1, "")
	b.failJob()
	b.reconcile()
	b.restart()
	b.reconcile()
	b.collect()
	b.reconcile()
	b.Expect(b.job().Name).To(Equal("bees-2"))
	second := b.job()

	// 1. The creation of the Job succeeds. The Job does not run, and the next reconciliation deletes it.
	late := desiredJob(first)
	b.Expect(b.client.Create(b.ctx, late)).To(Succeed())
	// 2. The record is rejected, and 3. the start is rejected too.
	b.Expect(b.reconciler.record(b.ctx, first, &setupObservation{now: b.clock.Now(), job: late}, true)).To(MatchError(apierrors.IsConflict, "is a Conflict"))
	stale := firstJob.DeepCopy()
	stale.Spec.Suspend, stale.Annotations[annotationStarted] = new(true), "false"
	b.Expect(b.reconciler.start(b.ctx, stale, b.clock.Now())).To(MatchError(errStale))

	b.reconcile()
	jobs := b.jobs()
	b.Expect(jobs).To(HaveLen(2))
	b.Expect(jobs[0].Spec.Suspend).To(HaveValue(BeTrue()))
	b.Expect(jobs[0].DeletionTimestamp).NotTo(BeNil())
	b.Expect(jobs[1]).To(Equal(*second), "the current attempt continues")
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
}

// A Job is found by its name: without its labels it still belongs to the attempt.
func TestJobWithoutItsLabelsIsKnown(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	late := desiredJob(b.setup())
	late.Labels = map[string]string{labelAttempt: "none"}
	b.Expect(b.client.Create(b.ctx, late)).To(Succeed())
	setup := b.reconcile()
	b.Expect(b.jobs()).To(HaveLen(1))
	b.Expect(setup.Spec.Launch.JobUID).To(Equal(string(late.UID)))
	b.Expect(b.job().Spec.Suspend).To(HaveValue(BeFalse()))
}

// A Job that is recorded and was not started is started. A Job that was started is not resumed.
func TestJobIsStartedOnce(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.reconciler = b.newReconciler(b.through(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if _, ok := object.(*batchv1.Job); ok {
				return errCrash
			}
			return c.Patch(ctx, object, patch, opts...)
		},
	}))
	_, err := b.try()
	b.Expect(err).To(MatchError(errCrash))
	b.Expect(b.setup().Spec.Launch.JobUID).To(Equal(string(b.job().UID)))
	b.Expect(b.job().Spec.Suspend).To(HaveValue(BeTrue()))
	unstarted := b.job()
	b.forget()
	b.reconcile()
	b.Expect(b.job().Spec.Suspend).To(HaveValue(BeFalse()))

	job := b.job()
	job.Spec.Suspend = new(true)
	b.Expect(b.client.Update(b.ctx, job)).To(Succeed())
	b.Expect(b.reconciler.start(b.ctx, unstarted, b.clock.Now())).To(MatchError(errStale), "a late start")
	b.Expect(b.job().Spec.Suspend).To(HaveValue(BeTrue()))
}

// A replica that is no longer the leader applies an old deadline late: the newer one stays.
func TestLateDeadlineIsRejected(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	b.change(func(spec *v1alpha1.FluxSetupSpec) { spec.ActiveDeadlineSeconds = new(int64(200)) })
	setup, job := b.setup(), b.job()
	b.change(func(spec *v1alpha1.FluxSetupSpec) { spec.ActiveDeadlineSeconds = new(int64(300)) })
	b.reconcile()
	b.Expect(isStale(b.reconciler.followDeadline(b.ctx, setup, job))).To(BeTrue())
	b.Expect(b.job().Spec.ActiveDeadlineSeconds).To(HaveValue(Equal(int64(300))))
}

// The operator is upgraded between the creation of the Job and that of its ConfigMap, and the new version writes other
// files. Nothing has run: the Job is deleted, and created again for the new files.
func TestUpgradeBeforeTheJobIsRecorded(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	old := desiredJob(b.setup())
	old.Annotations[annotationConfigHash] = "of other files"
	b.Expect(b.client.Create(b.ctx, old)).To(Succeed())
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonWaitingForPods)
	b.collect()
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
	b.Expect(b.job().UID).NotTo(Equal(old.UID))
	b.Expect(b.job().Annotations).To(HaveKeyWithValue(annotationConfigHash, clusterOf(b.setup()).Hash()))
}
