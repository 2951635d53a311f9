package controller

import (
	"context"
	"net/http"
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

// countJobs is a client that counts the Jobs that it creates.
func countJobs(b *setupTestEnv, made *atomic.Int32) client.Client {
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
	b := newSetupTestEnv(t, fluxOf(1))
	var made atomic.Int32
	c := countJobs(b, &made)
	var all sync.WaitGroup
	for range 4 {
		r := b.newReconciler(c)
		all.Go(func() {
			for range 20 {
				// The reconcilers that lose the race get an error, and retry.
				if _, err := r.Reconcile(b.ctx, ctrl.Request{NamespacedName: b.key("bees")}); err == nil {
					return
				}
			}
		})
	}
	all.Wait()
	setup := b.reconcile()
	b.Expect(made.Load()).To(Equal(int32(1)))
	b.Expect(b.jobs()).To(HaveLen(1))
	b.Expect(b.job().Annotations).To(HaveKeyWithValue(annotationStarted, "true"))
	b.Expect(setup.Spec.Launch.JobUID).To(Equal(string(b.job().UID)))
}

// Whichever part of the launch the cache lacks, one Job is created, and it is recorded.
func TestLaunchDoesNotTrustTheCache(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	noSetup, noJob := stale[v1alpha1.FluxSetup](b, "bees"), staleJobs(b)
	setup, job := b.reconcile(), b.job()
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
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	b.Expect(b.client.Delete(b.ctx, b.job(), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	setup := b.reconcile()
	message := b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonJobLost)
	b.Expect(message).To(ContainSubstring(setup.Spec.Launch.JobUID))
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonJobLost)

	b.forget()
	b.reconcile()
	b.Expect(b.job()).To(BeNil(), "it is not created again")

	// A Job of its name that is created late, or by a user, does not run, and is deleted.
	forged := desiredJob(setup)
	b.Expect(b.client.Create(b.ctx, forged)).To(Succeed())
	b.reconcile()
	b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonJobLost)
	b.Expect(b.job().Spec.Suspend).To(HaveValue(BeTrue()))
	b.Expect(b.job().DeletionTimestamp).NotTo(BeNil())
}

// isLaunch reports whether what is applied is the record of a launch.
func isLaunch(configuration runtime.ApplyConfiguration) bool {
	sent, ok := configuration.(*applyRequest)
	if !ok {
		return false
	}
	_, ok = sent.applyConfiguration.(*launchApplyConfiguration)
	return ok
}

// A Job that is deleted before it is recorded has not run: it is created again.
func TestJobDeletedBeforeItIsRecordedIsCreatedAgain(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.reconciler = b.newReconciler(b.through(interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, configuration runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if isLaunch(configuration) {
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
	setup := b.reconcile()
	b.Expect(b.job().UID).NotTo(Equal(first.UID))
	b.Expect(setup.Spec.Launch.JobUID).To(Equal(string(b.job().UID)))
	b.Expect(b.job().Spec.Suspend).To(HaveValue(BeFalse()))
}

// The cache still shows an attempt as it began, although it has failed since because of a name conflict. It is not
// launched.
func TestEndIsReadPastTheCacheBeforeALaunch(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	other := notOwnedObjects(b)["Job"]
	b.Expect(b.client.Create(b.ctx, other)).To(Succeed())
	b.reconcile()
	behind := stale[v1alpha1.FluxSetup](b, "bees")
	b.clock.Step(startupTimeout)
	b.reconcile()
	b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonNameConflict)

	b.Expect(b.client.Delete(b.ctx, other, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	b.reconciler = b.newReconciler(behind)
	_, err := b.try()
	b.Expect(err).To(MatchError(errStale))
	b.Expect(b.job()).To(BeNil())
}

func TestNextAttemptWaitsForAllOfTheLast(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(2))
	b.running()
	first := b.job()
	b.terminate(1, 137, "")
	b.finishJob(batchv1.JobFailureTarget, batchv1.JobReasonBackoffLimitExceeded)
	b.terminate(0, 143, "")
	b.reconcile()
	b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonBrokerFailed)

	b.restart()
	setup := b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonWaitingForPods)
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionFalse, v1alpha1.ReasonStarting)
	b.Expect(trueCondition(setup.Status.Conditions, v1alpha1.ConditionFailed)).To(BeNil(), "the previous attempt failed")
	b.Expect(setup.Status.ExitCode).To(BeNil())
	b.Expect(setup.Status.LeaderPod).To(BeEmpty())
	b.Expect(setup.Spec.Launch.Attempt).To(Equal(int32(2)), "the attempt begins with its record")
	b.Expect(setup.Spec.Launch.JobUID).To(BeEmpty())
	b.Expect(b.job().Finalizers).To(ContainElement(metav1.FinalizerDeleteDependents), "the pods go first")

	// The Job no longer exists, but its pods do.
	job := b.job()
	b.collectFiles(job)
	job.Finalizers = nil
	b.Expect(b.client.Update(b.ctx, job)).To(Succeed())
	b.remove(0)
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonWaitingForPods)
	b.Expect(b.job()).To(BeNil())

	b.remove(1)
	setup = b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
	b.Expect(b.job().UID).NotTo(Equal(first.UID))
	b.Expect(b.job().Labels).To(HaveKeyWithValue(labelAttempt, "2"))
	b.Expect(setup.Spec.Launch.JobUID).To(Equal(string(b.job().UID)))
}

// The cache shows the FluxSetup in the previous attempt, or suspended, and the Job of the current attempt. That Job is
// not changed.
func TestStaleFluxSetupDoesNotEndANewerAttempt(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	first := stale[v1alpha1.FluxSetup](b, "bees")
	b.change(func(spec *v1alpha1.FluxSetupSpec) { spec.Suspend = true })
	suspended := stale[v1alpha1.FluxSetup](b, "bees")
	b.reconcile()
	b.collect()
	b.reconcile()
	b.change(func(spec *v1alpha1.FluxSetupSpec) { spec.Suspend, spec.Attempt = false, 2 })
	b.reconcile()
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

// A Flux is deleted and created again at once, while the pods of the first one still exist. They have the same names as
// those of the second one.
func TestPodsOfAnEarlierFluxSetupAreWaitedFor(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	b.Expect(b.client.Delete(b.ctx, b.flux)).To(Succeed())
	b.Expect(b.client.Delete(b.ctx, b.setup())).To(Succeed())
	b.flux = b.makeFlux(fluxOf(1))
	b.applySetup(firstSetup(b.flux))
	b.recordSetup()
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonWaitingForPods)
	b.Expect(b.job().DeletionTimestamp).To(BeNil(), "it is left to the garbage collector")

	for _, dependent := range []client.Object{b.job(), b.secret(), b.configMap(), fetch[corev1.Service](b)} {
		b.Expect(b.client.Delete(b.ctx, dependent, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	}
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonWaitingForPods)
	b.remove(0)
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
}

// denied is the API server's response when an admission webhook denies a request with the given status.
func denied(code int32, reason metav1.StatusReason) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: `admission webhook "w.example.com" denied the request: no`,
	}}
}

// A webhook denies the record of the launch. That is a rejection, whatever status the webhook chooses: neither a stale
// cache nor a transient error. Nothing runs.
func TestDeniedLaunchIsReported(t *testing.T) {
	t.Parallel()
	for name, denial := range map[string]error{
		"Forbidden": denied(http.StatusForbidden, metav1.StatusReasonForbidden),
		"Conflict":  denied(http.StatusConflict, metav1.StatusReasonConflict),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newSetupTestEnv(t, fluxOf(1))
			b.reconciler = b.newReconciler(b.through(interceptor.Funcs{
				Apply: func(ctx context.Context, c client.WithWatch, configuration runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
					if isLaunch(configuration) {
						return denial
					}
					return c.Apply(ctx, configuration, opts...)
				},
			}))
			_, err := b.try()
			b.Expect(err).To(HaveOccurred(), "it is retried")
			b.Expect(b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)).To(ContainSubstring("denied the request"))
			b.Expect(b.job().Spec.Suspend).To(HaveValue(BeTrue()))

			b.forget()
			b.reconcile()
			b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
		})
	}
}
