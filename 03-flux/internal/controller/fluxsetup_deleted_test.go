package controller

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// orphan deletes the FluxSetup as kubectl delete --cascade=orphan does: the garbage collector removes the owner
// reference of the Job.
func (b *setupTestEnv) orphan() {
	b.t.Helper()
	job := b.job()
	job.OwnerReferences = nil
	b.Expect(b.client.Update(b.ctx, job)).To(Succeed())
	b.Expect(b.client.Delete(b.ctx, b.setup())).To(Succeed())
}

// The FluxSetup is deleted, and its Job is orphaned. A stale cache, which still has the FluxSetup, does not restore the
// owner reference: the garbage collector would delete a Job whose owner does not exist.
func TestJobIsNotOwnedByADeletedFluxSetup(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(*setupTestEnv){
		"deleted": func(b *setupTestEnv) { b.orphan() },
		"another has its name": func(b *setupTestEnv) {
			b.orphan()
			b.applySetup(firstSetup(b.flux))
		},
		"kept by a finalizer": func(b *setupTestEnv) {
			setup := b.setup()
			setup.Finalizers = []string{metav1.FinalizerOrphanDependents}
			b.Expect(b.client.Update(b.ctx, setup)).To(Succeed())
			b.orphan()
		},
	} {
		for ending, end := range map[string]func(*setupTestEnv){
			"running": func(*setupTestEnv) {},
			"complete": func(b *setupTestEnv) {
				b.terminate(0, 0, "")
				b.finishJob(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonSuccessPolicy)
				b.reconcile()
			},
		} {
			t.Run(name+", "+ending, func(t *testing.T) {
				t.Parallel()
				b := newSetupTestEnv(t, fluxOf(1))
				b.running()
				end(b)
				behind := stale[v1alpha1.FluxSetup](b, "bees")
				remove(b)
				b.reconciler = b.newReconciler(behind)
				_, err := b.try()
				b.Expect(b.job().OwnerReferences).To(BeEmpty())
				b.Expect(err).To(MatchError(errStale))
			})
		}
	}
}

// The deletion of the Job is rejected while a finalizer keeps its FluxSetup. The FluxSetup and the Flux report that,
// until it succeeds.
func TestRejectedDeletionOfTheJobOfADeletedFluxSetupIsReported(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.running()
	setup := b.setup()
	setup.Finalizers = []string{"example.com/wait"}
	b.Expect(b.client.Update(b.ctx, setup)).To(Succeed())
	b.Expect(b.client.Delete(b.ctx, setup)).To(Succeed())
	b.reconciler = b.newReconciler(b.through(interceptor.Funcs{
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			return apierrors.NewForbidden(batchv1.Resource("jobs"), "bees-1", errCrash)
		},
	}))
	configured := func() metav1.Condition {
		return conditionOf(b.setup().Status.Conditions, v1alpha1.ConditionConfigured)
	}
	ready := func() metav1.Condition {
		fluxes := NewFluxReconciler(b.client, b.client, b.events, b.clock)
		_, err := fluxes.Reconcile(b.ctx, ctrl.Request{NamespacedName: b.key("bees")})
		b.Expect(err).NotTo(HaveOccurred())
		return conditionOf(fetch[v1alpha1.Flux](b).Status.Conditions, v1alpha1.ConditionSetupReady)
	}
	for range 2 {
		_, err := b.try()
		b.Expect(err).To(MatchError(ContainSubstring(errCrash.Error())), "it is retried")
		b.Expect(configured().Reason).To(Equal(v1alpha1.ReasonApplyFailed))
		b.Expect(configured().Message).To(ContainSubstring(errCrash.Error()))
		b.Expect(configured().ObservedGeneration).To(Equal(b.setup().Generation))
		b.Expect(ready().Status).To(Equal(metav1.ConditionFalse))
		b.Expect(ready().Reason).To(Equal(v1alpha1.ReasonApplyFailed))
		b.Expect(ready().Message).To(Equal(configured().Message))
	}
	version := b.setup().ResourceVersion
	_, _ = b.try()
	b.Expect(b.setup().ResourceVersion).To(Equal(version))

	b.forget()
	b.reconcile()
	b.Expect(b.job().DeletionTimestamp).NotTo(BeNil())
	b.Expect(needsAttention(configured())).To(BeFalse())
	b.Expect(ready().Reason).To(Equal(v1alpha1.ReasonSetupLost))
}
