package controller

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// countJobs is a client that counts the Jobs that are made through it.
func countJobs(b *bees, made *atomic.Int32) client.Client {
	return b.through(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			err := c.Create(ctx, object, opts...)
			if _, ok := object.(*batchv1.Job); ok && err == nil {
				made.Add(1)
			}
			return err
		},
	})
}

func TestReconcilersAtOnceMakeOneJob(t *testing.T) {
	t.Parallel()
	b := newBees(t, fluxOf(1))
	var made atomic.Int32
	c := countJobs(b, &made)
	var all sync.WaitGroup
	for range 4 {
		r := b.newReconciler(c)
		all.Go(func() {
			for range 20 {
				// Those that lose the race get an error, and try again.
				if _, err := r.Reconcile(b.ctx, ctrl.Request{NamespacedName: b.key("bees")}); err == nil {
					return
				}
			}
		})
	}
	all.Wait()
	setup := b.pass()
	b.Expect(made.Load()).To(Equal(int32(1)))
	b.Expect(b.jobs()).To(HaveLen(1))
	b.Expect(b.job().Annotations).To(HaveKeyWithValue(annotationStarted, "true"))
	b.Expect(setup.Spec.Launch.JobUID).To(Equal(string(b.job().UID)))
}

// Whatever of the launch a cache does not have yet: one Job is created, and it is recorded.
func TestLaunchDoesNotTrustTheCache(t *testing.T) {
	t.Parallel()
	b := newBees(t, fluxOf(1))
	noSetup, noJob := stale[v1alpha1.FluxSetup](b, "bees"), staleJobs(b)
	setup, job := b.pass(), b.job()
	for name, c := range map[string]client.Client{"FluxSetup": noSetup, "Job": noJob} {
		b.reconciler = b.newReconciler(c)
		_, err := b.try()
		b.Expect(err).NotTo(HaveOccurred(), name)
		b.Expect(b.setup()).To(Equal(setup), name)
		b.Expect(b.job()).To(Equal(job), name)
	}
}

func TestJobLost(t *testing.T) {
	t.Parallel()
	b := newBees(t, fluxOf(1))
	b.running()
	b.Expect(b.client.Delete(b.ctx, b.job(), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	setup := b.pass()
	message := b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonJobLost)
	b.Expect(message).To(ContainSubstring(setup.Spec.Launch.JobUID))
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonJobLost)

	b.forget()
	b.pass()
	b.Expect(b.job()).To(BeNil(), "it is never created again")

	// Nor if a Job of its name is created late, or by hand: it does not run, and is deleted.
	forged := desiredJob(setup)
	b.Expect(b.client.Create(b.ctx, forged)).To(Succeed())
	b.pass()
	b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonJobLost)
	b.Expect(b.job().Spec.Suspend).To(HaveValue(BeTrue()))
	b.Expect(b.job().DeletionTimestamp).NotTo(BeNil())
}

// A Job that is deleted before it is recorded has not run: it is created again.
func TestJobDeletedBeforeItIsRecordedIsCreatedAgain(t *testing.T) {
	t.Parallel()
	b := newBees(t, fluxOf(1))
	b.reconciler = b.newReconciler(b.through(interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, configuration runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if _, ok := configuration.(*launchConfiguration); ok {
				return errCrash
			}
			return c.Apply(ctx, configuration, opts...)
		},
	}))
	_, err := b.try()
	b.Expect(err).To(MatchError(errCrash))
	first := b.job()
	b.Expect(first.Spec.Suspend).To(HaveValue(BeTrue()), "nothing runs before it is recorded")
	b.Expect(b.client.Delete(b.ctx, first, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	b.collectFiles(first)
	b.forget()
	setup := b.pass()
	b.Expect(b.job().UID).NotTo(Equal(first.UID))
	b.Expect(setup.Spec.Launch.JobUID).To(Equal(string(b.job().UID)))
	b.Expect(b.job().Spec.Suspend).To(HaveValue(BeFalse()))
}

// A replica of the operator that is not the leader any more sends what it had decided, when the next attempt runs.
func TestLateWritesOfAnEarlierAttempt(t *testing.T) {
	t.Parallel()
	b := newBees(t, fluxOf(1))
	first := b.setup()
	b.running()
	firstJob := b.job()
	b.terminate(0, 1, "")
	b.failJob()
	b.pass()
	b.restart()
	b.pass()
	b.collect()
	b.pass()
	b.Expect(b.job().Name).To(Equal("bees-2"))
	second := b.job()

	// 1. The creation of the Job succeeds. It does not run, and the next reconciliation deletes it.
	late := desiredJob(first)
	b.Expect(b.client.Create(b.ctx, late)).To(Succeed())
	// 2. The record is rejected, and 3. so is the start.
	b.Expect(b.reconciler.record(b.ctx, first, &setupObservation{now: b.clock.Now(), job: late}, true)).To(MatchError(apierrors.IsConflict, "is a Conflict"))
	stale := firstJob.DeepCopy()
	stale.Spec.Suspend, stale.Annotations[annotationStarted] = new(true), "false"
	b.Expect(b.reconciler.start(b.ctx, stale)).To(MatchError(errStale))

	b.pass()
	jobs := b.jobs()
	b.Expect(jobs).To(HaveLen(2))
	b.Expect(jobs[0].Spec.Suspend).To(HaveValue(BeTrue()))
	b.Expect(jobs[0].DeletionTimestamp).NotTo(BeNil())
	b.Expect(jobs[1]).To(Equal(*second), "the present attempt goes on")
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
}

// A Job that is recorded and was not started is started; one that was started is not resumed.
func TestJobIsStartedOnce(t *testing.T) {
	t.Parallel()
	b := newBees(t, fluxOf(1))
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
	b.pass()
	b.Expect(b.job().Spec.Suspend).To(HaveValue(BeFalse()))

	job := b.job()
	job.Spec.Suspend = new(true)
	b.Expect(b.client.Update(b.ctx, job)).To(Succeed())
	b.Expect(b.reconciler.start(b.ctx, unstarted)).To(MatchError(errStale), "a late start")
	b.Expect(b.job().Spec.Suspend).To(HaveValue(BeTrue()))
}

// The cache still shows an attempt as it began, and it has failed since, for want of a name. It is not begun.
func TestEndIsReadPastTheCacheBeforeALaunch(t *testing.T) {
	t.Parallel()
	b := newBees(t, fluxOf(1))
	foreign := foreigners(b)["Job"]
	b.Expect(b.client.Create(b.ctx, foreign)).To(Succeed())
	b.pass()
	behind := stale[v1alpha1.FluxSetup](b, "bees")
	b.clock.Step(startupTimeout)
	b.pass()
	b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonNameConflict)

	b.Expect(b.client.Delete(b.ctx, foreign, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	b.reconciler = b.newReconciler(behind)
	_, err := b.try()
	b.Expect(err).To(MatchError(errStale))
	b.Expect(b.job()).To(BeNil())
}

func TestNextAttemptWaitsForAllOfTheLast(t *testing.T) {
	t.Parallel()
	b := newBees(t, fluxOf(2))
	b.running()
	first := b.job()
	b.terminate(1, 137, "")
	b.judge(batchv1.JobFailureTarget, batchv1.JobReasonBackoffLimitExceeded)
	b.terminate(0, 143, "")
	b.pass()
	b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonBrokerFailed)

	b.restart()
	setup := b.pass()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonWaitingForPods)
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionFalse, v1alpha1.ReasonStarting)
	b.Expect(trueCondition(setup.Status.Conditions, v1alpha1.ConditionFailed)).To(BeNil(), "that was the attempt before")
	b.Expect(setup.Status.ExitCode).To(BeNil())
	b.Expect(setup.Status.LeaderPod).To(BeEmpty())
	b.Expect(setup.Spec.Launch.Attempt).To(Equal(int32(2)), "the attempt begins with its record")
	b.Expect(setup.Spec.Launch.JobUID).To(BeEmpty())
	b.Expect(b.job().Finalizers).To(ContainElement(metav1.FinalizerDeleteDependents), "the pods go first")

	// The Job is gone, and its pods are not.
	job := b.job()
	b.collectFiles(job)
	job.Finalizers = nil
	b.Expect(b.client.Update(b.ctx, job)).To(Succeed())
	b.remove(0)
	b.pass()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonWaitingForPods)
	b.Expect(b.job()).To(BeNil())

	b.remove(1)
	setup = b.pass()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
	b.Expect(b.job().UID).NotTo(Equal(first.UID))
	b.Expect(b.job().Labels).To(HaveKeyWithValue(labelAttempt, "2"))
	b.Expect(setup.Spec.Launch.JobUID).To(Equal(string(b.job().UID)))
}

// The cache shows the FluxSetup of the attempt before, or as it was suspended, and the Job of the present one:
// that is not touched.
func TestStaleFluxSetupDoesNotEndANewerAttempt(t *testing.T) {
	t.Parallel()
	b := newBees(t, fluxOf(1))
	b.running()
	first := stale[v1alpha1.FluxSetup](b, "bees")
	b.change(func(spec *v1alpha1.FluxSetupSpec) { spec.Suspend = true })
	suspended := stale[v1alpha1.FluxSetup](b, "bees")
	b.pass()
	b.collect()
	b.pass()
	b.change(func(spec *v1alpha1.FluxSetupSpec) { spec.Suspend, spec.Attempt = false, 2 })
	b.pass()
	setup, job, secret := b.setup(), b.job(), b.secret()
	b.Expect(job.Labels).To(HaveKeyWithValue(labelAttempt, "2"))

	for name, c := range map[string]client.Client{"attempt 1": first, "suspended": suspended} {
		b.reconciler = b.newReconciler(c)
		_, _ = b.try()
		b.Expect(b.job()).To(Equal(job), name)
		b.Expect(b.secret()).To(Equal(secret), name)
		b.Expect(b.setup().Spec).To(Equal(setup.Spec), name)
	}
}

// A Flux is deleted and made anew at once, and the pods of the first are still there: their names are those of
// the second's.
func TestPodsOfAnEarlierFluxSetupAreWaitedFor(t *testing.T) {
	t.Parallel()
	b := newBees(t, fluxOf(1))
	b.running()
	b.Expect(b.client.Delete(b.ctx, b.flux)).To(Succeed())
	b.Expect(b.client.Delete(b.ctx, b.setup())).To(Succeed())
	b.flux = b.makeFlux(fluxOf(1))
	b.applySetup(firstSetup(b.flux))
	b.pass()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonWaitingForPods)
	b.Expect(b.job().DeletionTimestamp).To(BeNil(), "that is left to the garbage collector")

	for _, dependent := range []client.Object{b.job(), b.secret(), b.configMap(), fetch[corev1.Service](b)} {
		b.Expect(b.client.Delete(b.ctx, dependent, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	}
	b.pass()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonWaitingForPods)
	b.remove(0)
	b.pass()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
}
