package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// failingServices is a client with which every apply of a Service fails.
func failingServices(b *setupTestEnv, err func() error) client.Client {
	return b.through(interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, configuration runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if kind, ok := configuration.(applyConfiguration); ok && *kind.GetKind() == "Service" {
				return err()
			}
			return c.Apply(ctx, configuration, opts...)
		},
	})
}

// The message of a rejection may be longer than the message of a condition can be.
func TestLongRejectionIsReported(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.reconciler = b.newReconciler(failingServices(b, func() error {
		return apierrors.NewForbidden(corev1.Resource("services"), "bees", errors.New(strings.Repeat("é", 20_000)))
	}))
	_, err := b.try()
	b.Expect(err).To(HaveOccurred())
	message := b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
	b.Expect(len(message)).To(BeNumerically("~", maxConditionMessage, 4))
	b.Expect(utf8.ValidString(message)).To(BeTrue())
	b.clock.Step(startupTimeout)
	_, _ = b.try()
	b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonApplyFailed)
}

// A fail-closed admission webhook is down, and a user deletes the Service. The status reports the failure once for all
// retries, with the current generation, until the webhook is available again.
func TestTransientErrorIsReportedOnce(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	b.change(func(spec *v1alpha1.FluxSetupSpec) { spec.ActiveDeadlineSeconds = new(int64(600)) })
	b.Expect(b.client.Delete(b.ctx, fetch[corev1.Service](b))).To(Succeed())
	tries := 0
	b.reconciler = b.newReconciler(failingServices(b, func() error {
		tries++
		return apierrors.NewInternalError(fmt.Errorf("failed calling webhook: dial tcp 10.0.0.1:%d: connect: connection refused", 40000+tries))
	}))
	_, err := b.try()
	b.Expect(err).To(HaveOccurred(), "it is retried")
	message := b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonAPIError)
	b.Expect(message).To(ContainSubstring("failed calling webhook"))
	b.Expect(message).NotTo(ContainSubstring("40001"))
	b.expect(v1alpha1.ConditionQuorumReached, metav1.ConditionTrue, v1alpha1.ReasonQuorumReached)
	b.Expect(b.job().Spec.ActiveDeadlineSeconds).To(HaveValue(Equal(int64(600))), "other requests are sent")

	version := b.setup().ResourceVersion
	b.reconciler = b.newReconciler(failingServices(b, func() error { return errors.New("context deadline exceeded") }))
	_, err = b.try()
	b.Expect(err).To(HaveOccurred())
	b.Expect(b.setup().ResourceVersion).To(Equal(version), "a retry that fails with another message is not written")

	b.forget()
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
}

// The cache is stale: the status is not computed from it. A Conflict that lasts is reported: the cache is not behind for so
// long.
func TestSetupConflictWritesNoStatus(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	b.Expect(b.client.Delete(b.ctx, fetch[corev1.Service](b))).To(Succeed())
	version := b.setup().ResourceVersion
	b.reconciler = b.newReconciler(failingServices(b, func() error {
		return apierrors.NewConflict(batchv1.Resource("services"), "bees", errors.New("the object has been modified"))
	}))
	_, err := b.try()
	b.Expect(isStale(err)).To(BeTrue())
	b.Expect(b.setup().ResourceVersion).To(Equal(version))

	b.clock.Step(staleTimeout)
	_, err = b.try()
	b.Expect(err).To(HaveOccurred(), "it is retried")
	b.Expect(b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonAPIError)).To(ContainSubstring("the object has been modified"))
	version = b.setup().ResourceVersion
	_, err = b.try()
	b.Expect(err).To(HaveOccurred())
	b.Expect(b.setup().ResourceVersion).To(Equal(version), "once")
	b.use(b.client)
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
}

// The status reports why a suspension cannot proceed.
func TestSuspensionThatFailsIsReported(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	b.suspend()
	b.reconciler = b.newReconciler(b.through(interceptor.Funcs{
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			return apierrors.NewForbidden(batchv1.Resource("jobs"), "bees-1", errors.New("a policy keeps Jobs"))
		},
	}))
	_, err := b.try()
	b.Expect(err).To(HaveOccurred(), "it is retried")
	b.Expect(b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)).To(ContainSubstring("a policy keeps Jobs"))
}

// A failed deletion of the Service is reported too.
func TestServiceThatCannotBeDeletedIsReported(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	b.suspend()
	b.reconcile()
	b.collect()
	b.reconciler = b.newReconciler(b.through(interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.DeleteOption) error {
			return apierrors.NewForbidden(corev1.Resource("services"), object.GetName(), errors.New("a policy keeps Services"))
		},
	}))
	_, err := b.try()
	b.Expect(err).To(HaveOccurred(), "it is retried")
	b.Expect(b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)).To(ContainSubstring("a policy keeps Services"))
}

// The Job cannot be read when the time to start has expired. The Job may run, so the attempt does not fail.
func TestJobThatCannotBeReadIsNoFailure(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.reconcile()
	b.clock.Step(startupTimeout)
	b.use(b.through(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*batchv1.JobList); ok {
				return errors.New("no connection")
			}
			return c.List(ctx, list, opts...)
		},
	}))
	_, err := b.try()
	b.Expect(err).To(HaveOccurred())
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonAPIError)
	b.Expect(trueCondition(b.setup().Status.Conditions, v1alpha1.ConditionFailed)).To(BeNil())
}

// keepingJobs is a client with which every deletion of a Job is rejected by a policy, with a different message each
// time.
func keepingJobs(b *setupTestEnv) client.Client {
	tries := 0
	return b.through(interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
			if _, ok := object.(*batchv1.Job); !ok {
				return c.Delete(ctx, object, opts...)
			}
			tries++
			return apierrors.NewForbidden(batchv1.Resource("jobs"), object.GetName(), fmt.Errorf("a policy keeps Jobs, try %d", tries))
		},
	})
}

// A policy rejects the deletion of the Job of an attempt that has ended, and its pods still run. Its status reports
// that, and so does the status of the next attempt, which waits. The deletion is retried until it succeeds.
func TestJobThatCannotBeDeletedIsReported(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.reconcile()
	b.startPods()
	b.use(keepingJobs(b))
	b.clock.Step(startupTimeout)
	_, err := b.try()
	b.Expect(err).To(HaveOccurred(), "it is retried")
	b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonPodNotStarted)

	_, err = b.try()
	b.Expect(err).To(HaveOccurred())
	b.Expect(b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)).To(ContainSubstring("a policy keeps Jobs"))
	b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonPodNotStarted)

	b.restart()
	_, err = b.try()
	b.Expect(err).To(HaveOccurred())
	b.Expect(b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)).To(ContainSubstring("a policy keeps Jobs"))
	b.Expect(b.jobs()).To(HaveLen(1))

	b.forget()
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonWaitingForPods)
	b.collect()
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
}

// Without a next attempt the deletion succeeds as well, and then nothing is written any more.
func TestJobThatCanBeDeletedAgain(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.reconcile()
	b.startPods()
	b.use(keepingJobs(b))
	b.clock.Step(startupTimeout)
	for range 2 {
		_, err := b.try()
		b.Expect(err).To(HaveOccurred())
	}
	b.forget()
	b.reconcile()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonFinished)
	b.collect()
	version := b.reconcile().ResourceVersion
	b.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonPodNotStarted)
	b.Expect(b.reconcile().ResourceVersion).To(Equal(version))
}
