package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

// The record cannot be written, and a worker runs and ends. The Goop is deleted in the foreground while the operator is
// down. The reason ApplyFailed in the status does not prove that no work has begun.
func TestARejectedRecordIsNoProofThatNoWorkHasBegun(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(cleanup)
	f.rejectingRecords()
	f.kubelet("a/0", hasFinished(0, ""))
	f.settle()
	f.Expect(f.record().Begun).To(BeEmpty())
	f.Expect(conditionOf(f.goop().Status.Conditions, v1alpha1.ConditionRunning).Reason).To(Equal(v1alpha1.ReasonApplyFailed))
	f.deletedInTheForeground("job-0")
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"a/cleanup"}))
}

// While the record is rejected the cleanup does not run. When its time has expired, the outcome is not CleanedUp.
func TestWorkThatCannotBeRecordedIsNotCalledCleanedUp(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(cleanup)
	f.rejectingRecords()
	f.kubelet("a/0", hasFinished(0, ""))
	f.settle()
	f.deletedInTheForeground("job-0")
	f.rejectingRecords()
	f.settle()
	f.clock.Step(time.Hour)
	f.recorded()
	f.settle()
	f.Expect(f.gone()).To(BeTrue())
	f.Expect(f.recorded()).To(ContainElement(HavePrefix("Warning CleanupIncomplete")))
}

// The DaemonSet is rejected first, and created later. Then the operator crashes before it has written another status.
func TestADaemonSetThatWasRejectedOnceMayHaveBeenCreated(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	rejects := true
	f.reconciler.Client = interceptor.NewClient(f.watching(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if _, ok := obj.(*appsv1.DaemonSet); ok && rejects {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "daemonsets"}, obj.GetName(), errors.New("a policy"))
			}
			return c.Create(ctx, obj, opts...)
		},
	})
	f.create(cleanup)
	f.expectNotRunning(v1alpha1.ReasonApplyFailed)
	rejects = false
	f.reconciles(1)
	f.Expect(f.daemonSets()).To(HaveKey("job-0"))
	f.expectNotRunning(v1alpha1.ReasonApplyFailed)
	f.simulateDaemonSets()
	f.Expect(f.places()).To(Equal([]string{"a/0"}))
	f.deletedInTheForeground("job-0")
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"a/cleanup"}))
}

// After a restart the operator does not know that no DaemonSet could be created. The cleanup runs wherever work may have
// run.
func TestAfterARestartWorkMayHaveBegun(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	notOwned := desiredRound(&v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: f.namespace, UID: "other"}, Spec: f.spec()}, plan.Round{}, testImages)
	notOwned.OwnerReferences = nil
	f.Expect(f.client.Create(f.ctx, notOwned)).To(Succeed())
	f.create(cleanup, workers(2))
	f.expectNotRunning(v1alpha1.ReasonNameConflict)
	f.Expect(f.client.Delete(f.ctx, notOwned)).To(Succeed())
	f.simulateDaemonSets()
	f.use()
	f.delete()
	f.Expect(f.places()).To(Equal([]string{"a/cleanup", "b/cleanup"}))
}

// The Goop is deleted in the foreground while the operator is down, and no node is eligible any more. It is not known where
// work had begun.
func TestWorkThatCannotBeTracedIsNotCalledCleanedUp(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(cleanup)
	f.kubelet("a/0", isRunning)
	f.Expect(f.record().Begun).To(BeEmpty())
	f.recorded()
	f.taint("a", corev1.Taint{Key: "gone", Effect: corev1.TaintEffectNoExecute})
	f.deletedInTheForeground("job-0")
	f.settle()
	f.Expect(f.gone()).To(BeTrue())
	f.Expect(f.recorded()).To(ContainElement(HavePrefix("Warning CleanupIncomplete cleanupCmd has not run")))
}
