package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// The operator was down for longer than the time to start, and no Job ran: the Job is started, and its time counts from
// then.
func TestAttemptIsTriedOnceAfterTheTimeToStart(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]interceptor.Funcs{
		"what it needs could not be created": {
			Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
				if _, ok := object.(*corev1.Secret); ok {
					return errors.New("out of order")
				}
				return c.Create(ctx, object, opts...)
			},
		},
		"the operator crashed before the start": {
			Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
				if _, ok := object.(*batchv1.Job); ok {
					return errCrash
				}
				return c.Patch(ctx, object, patch, opts...)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newSetupTestEnv(t, fluxOf(1))
			b.reconciler = b.newReconciler(b.through(fault))
			_, err := b.try()
			b.Expect(err).To(HaveOccurred())
			b.forget()
			b.clock.Step(2 * startupTimeout)
			result, err := b.try()
			b.Expect(err).NotTo(HaveOccurred())
			b.Expect(attemptEnded(b.setup())).To(BeFalse())
			b.Expect(b.job().Spec.Suspend).To(HaveValue(BeFalse()))
			b.Expect(result.RequeueAfter).To(Equal(podsTimeout))

			b.startPods()
			b.clock.Step(startupTimeout)
			b.reconcile()
			b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonPodNotStarted)
		})
	}
}

// The cache is stale when the time to start expires: the command runs already, or has ended.
func TestNothingIsFailedByAStaleCache(t *testing.T) {
	t.Parallel()
	t.Run("of Jobs", func(t *testing.T) {
		t.Parallel()
		b := newSetupTestEnv(t, fluxOf(1))
		b.reconcile()
		b.startPods()
		b.reconciler = b.newReconciler(staleJobs(b))
		b.reconcile()
		b.finishJob(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonSuccessPolicy)
		b.clock.Step(startupTimeout)
		b.reconcile()
		b.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
		b.Expect(b.job().DeletionTimestamp).To(BeNil())
	})
	t.Run("of pods", func(t *testing.T) {
		t.Parallel()
		b := newSetupTestEnv(t, fluxOf(1))
		b.reconcile()
		b.reconciler = b.newReconciler(b.through(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, ok := list.(*corev1.PodList); ok {
					return nil
				}
				return c.List(ctx, list, opts...)
			},
		}))
		b.reconcile()
		b.startPods()
		b.ready(0)
		b.clock.Step(startupTimeout)
		b.reconcile()
		b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
		b.Expect(attemptEnded(b.setup())).To(BeFalse())
	})
}

// The Job has failed, because another pod has or because the deadline was exceeded. The cache does not have the end of rank 0,
// which is a success.
func TestVerdictIsNoFailureByAStaleCacheOfPods(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(2))
	b.running()
	var then corev1.PodList
	b.Expect(b.client.List(b.ctx, &then, client.InNamespace(b.namespace))).To(Succeed())
	b.terminate(1, 1, "")
	b.terminate(0, 0, "")
	b.failJob()
	b.reconciler = b.newReconciler(b.through(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if pods, ok := list.(*corev1.PodList); ok {
				then.DeepCopyInto(pods)
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	}))
	b.reconcile()
	b.clock.Step(terminationTimeout)
	b.reconcile()
	b.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonCommandSucceeded)
}

// The replica that launched the attempt had a clock that is an hour ahead of ours: the time to start is not longer.
func TestStartupTimeoutWithAClockThatIsBehind(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	now := b.clock.Now()
	b.clock.SetTime(now.Add(time.Hour))
	b.reconcile()
	b.startPods()
	b.forget()
	b.clock.SetTime(now)
	for range 2 {
		result, err := b.try()
		b.Expect(err).NotTo(HaveOccurred())
		b.Expect(result.RequeueAfter).To(BeElementOf(readinessInterval, startupTimeout, startupTimeout-readinessInterval))
		b.clock.Step(readinessInterval)
	}
	b.clock.Step(startupTimeout)
	b.reconcile()
	b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonPodNotStarted)
}

// Our clock is an hour ahead of that of the replica that launched the attempt: the time to start is not shorter.
func TestStartupTimeoutWithAClockThatIsAhead(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.reconcile()
	b.startPods()
	b.forget()
	b.clock.Step(time.Hour)
	result, err := b.try()
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(attemptEnded(b.setup())).To(BeFalse())
	b.Expect(result.RequeueAfter).To(Equal(startupTimeout))
	b.clock.Step(startupTimeout)
	b.reconcile()
	b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonPodNotStarted)
}

// The replica that started the Job had a clock that is a day ahead of the one that recorded it: the time to start is
// not longer.
func TestStartupTimeoutAfterAStartByAClockThatIsAhead(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	now := b.clock.Now()
	b.reconciler = b.newReconciler(b.through(interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return errCrash
		},
	}))
	_, err := b.try()
	b.Expect(err).To(MatchError(errCrash))
	b.forget()
	b.clock.SetTime(now.Add(24 * time.Hour))
	b.reconcile()
	b.startPods()
	b.forget()
	b.clock.SetTime(now)
	for range 2 {
		result, err := b.try()
		b.Expect(err).NotTo(HaveOccurred())
		b.Expect(result.RequeueAfter).To(BeNumerically("<=", startupTimeout))
		b.clock.Step(readinessInterval)
	}
	b.clock.Step(startupTimeout)
	b.reconcile()
	b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonPodNotStarted)
}

// Our clock is briefly set back: the time to start is not shorter.
func TestStartupTimeoutWithAClockThatIsSetBackForAMoment(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	now := b.clock.Now()
	b.reconcile()
	b.startPods()
	b.clock.SetTime(now.Add(-time.Hour))
	b.reconcile()
	b.clock.SetTime(now.Add(20 * time.Second))
	result, err := b.try()
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(attemptEnded(b.setup())).To(BeFalse())
	b.Expect(result.RequeueAfter).To(Equal(startupTimeout - 20*time.Second))
}

// Our clock is set back while the operator waits for the end of a Job: the wait is not longer.
func TestEndIsWaitedForWithAClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	b.clock.Step(2 * time.Hour)
	b.terminateBroker(0, "")
	b.reconcile()
	b.clock.Step(-time.Hour)
	result, err := b.try()
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(result.RequeueAfter).To(Equal(terminationTimeout))
}
