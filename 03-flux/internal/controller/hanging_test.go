package controller

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// hanging simulates an admission webhook that delays writes for longer than a reconciliation may take.
var hanging = interceptor.Funcs{
	Create: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.CreateOption) error {
		<-ctx.Done()
		return ctx.Err()
	},
	Apply: func(ctx context.Context, _ client.WithWatch, _ runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
		<-ctx.Done()
		return ctx.Err()
	},
}

// shorten gives a reconciliation little more time than it needs to report.
func (w *testEnv) shorten(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, reportTime+5*time.Second)
	t.Cleanup(cancel)
	w.ctx = ctx
}

func TestHangingRequestOfAFluxIsReported(t *testing.T) {
	t.Parallel()
	w := newFluxTestEnv(t)
	w.use(w.counting(hanging))
	w.Expect(w.client.Create(w.ctx, &v1alpha1.Flux{
		ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: w.namespace}, Spec: jobSpec(),
	})).To(Succeed())
	w.shorten(t)
	_, err := w.tryReconcile()
	w.Expect(err).To(MatchError(context.DeadlineExceeded), "the queue retries")
	w.expect(w.flux(), v1alpha1.ConditionSetupReady, metav1.ConditionFalse, v1alpha1.ReasonAPIError)
	w.Expect(w.recorded()).To(ConsistOf(HavePrefix("Warning APIError")))
}

func TestHangingRequestOfAFluxSetupIsReported(t *testing.T) {
	t.Parallel()
	b := newSetupTestEnv(t, fluxOf(1))
	b.reconciler = b.newReconciler(b.through(hanging))
	b.shorten(t)
	_, err := b.try()
	b.Expect(err).To(MatchError(context.DeadlineExceeded), "the queue retries")
	b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonAPIError)
}
