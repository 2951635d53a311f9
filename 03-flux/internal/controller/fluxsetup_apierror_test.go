package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// failingServices is a client whose applies of Services fail.
func failingServices(b *bees, err func() error) client.Client {
	return b.through(interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, configuration runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if _, ok := configuration.(*corev1ac.ServiceApplyConfiguration); ok {
				return err()
			}
			return c.Apply(ctx, configuration, opts...)
		},
	})
}

// A fail-closed admission webhook is down, and a user deletes the Service: the status says so at the present generation,
// once for all retries, and takes it back when the webhook is up again.
func TestTransientErrorIsReportedOnce(t *testing.T) {
	t.Parallel()
	b := newBees(t, fluxOf(1))
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
	b.Expect(b.job().Spec.ActiveDeadlineSeconds).To(HaveValue(Equal(int64(600))), "what does not fail is done")

	version := b.setup().ResourceVersion
	b.reconciler = b.newReconciler(failingServices(b, func() error { return errors.New("context deadline exceeded") }))
	_, err = b.try()
	b.Expect(err).To(HaveOccurred())
	b.Expect(b.setup().ResourceVersion).To(Equal(version), "a retry that fails in another way is not written")

	b.forget()
	b.pass()
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
}

// What was read is older than what the API server has: nothing is computed from it.
func TestSetupConflictWritesNoStatus(t *testing.T) {
	t.Parallel()
	b := newBees(t, fluxOf(1))
	b.running()
	b.Expect(b.client.Delete(b.ctx, fetch[corev1.Service](b))).To(Succeed())
	version := b.setup().ResourceVersion
	b.reconciler = b.newReconciler(failingServices(b, func() error {
		return apierrors.NewConflict(batchv1.Resource("services"), "bees", errors.New("the object has been modified"))
	}))
	_, err := b.try()
	b.Expect(isStale(err)).To(BeTrue())
	b.Expect(b.setup().ResourceVersion).To(Equal(version))
}

// A suspension that cannot proceed says why.
func TestSuspensionThatFailsIsReported(t *testing.T) {
	t.Parallel()
	b := newBees(t, fluxOf(1))
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

// The Job cannot be read when the time to start has expired: it may run, so that is no failure.
func TestUnreadJobIsNoFailure(t *testing.T) {
	t.Parallel()
	b := newBees(t, fluxOf(1))
	b.pass()
	b.clock.Step(startupTimeout)
	b.reconciler = b.newReconciler(b.through(interceptor.Funcs{
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
