package controller

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

// An admission webhook delays a request for longer than a reconciliation may take. The reconciliation stops in time to
// report that.
func TestHangingRequestIsReported(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(suspended)
	goop := f.goop()
	goop.Spec.Suspend = false
	f.Expect(f.client.Update(f.ctx, goop)).To(Succeed())
	f.use()
	f.reconciler.Client = interceptor.NewClient(f.watching(), interceptor.Funcs{
		Create: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.CreateOption) error {
			<-ctx.Done()
			return ctx.Err()
		},
	})
	f.Eventually(func() error {
		f.clock.Step(writeInterval)
		ctx, cancel := context.WithTimeout(f.ctx, reportTime+5*time.Second)
		defer cancel()
		_, err := f.reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: f.key()})
		return err
	}).WithTimeout(time.Minute).Should(MatchError(context.DeadlineExceeded), "the queue retries")
	f.expectNotRunning(v1alpha1.ReasonAPIError)
	f.Expect(f.recorded()).To(ContainElement(HavePrefix("Warning APIError")))
}

// The writes of the record hang. Work that has to end does not wait for them, although each is tried again as soon as the
// queue retries.
func TestWorkEndsThoughTheRecordHangs(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create()
	f.runs("a/0")
	f.use()
	f.reconciler.Client = gatedClient{interceptor.NewClient(f.watching(), interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.UpdateOption) error {
			if _, isShard := object.(*corev1.ConfigMap); !isShard {
				return c.Update(ctx, object, opts...)
			}
			<-ctx.Done()
			return ctx.Err()
		},
	})}
	goop := f.goop()
	goop.Spec.Suspend = true
	f.Expect(f.client.Update(f.ctx, goop)).To(Succeed())
	for range 2 {
		ctx, cancel := context.WithTimeout(f.ctx, reportTime+20*time.Second)
		_, _ = f.reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: f.key()})
		cancel()
		f.clock.Step(time.Minute)
	}
	f.Expect(roundOf(0, f.daemonSets()["job-0"])).To(Equal(plan.Round{}))
}
