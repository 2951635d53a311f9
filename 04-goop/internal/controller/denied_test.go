package controller

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// denied is the API server's response when an admission webhook denies a request with the given status.
func denied(code int32, reason metav1.StatusReason) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: `admission webhook "w.example.com" denied the request: no`,
	}}
}

// A webhook denies the finalizer. Whatever its status code, that is a rejection, not a stale cache or a transient error.
func TestDeniedFinalizerIsReported(t *testing.T) {
	t.Parallel()
	for name, denial := range map[string]error{
		"Forbidden": denied(http.StatusForbidden, metav1.StatusReasonForbidden),
		"Conflict":  denied(http.StatusConflict, metav1.StatusReasonConflict),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a")
			f.reconciler.Client = interceptor.NewClient(f.watching(), interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
					if _, ok := obj.(*v1alpha1.Goop); ok {
						return denial
					}
					return c.Patch(ctx, obj, patch, opts...)
				},
			})
			goop := &v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: f.namespace}, Spec: f.spec(cleanup)}
			f.Expect(f.client.Create(f.ctx, goop)).To(Succeed())
			_, err := f.reconcile()
			f.Expect(isRejected(err)).To(BeTrue(), "the queue retries it with back-off: %v", err)
			f.Expect(f.expectNotRunning(v1alpha1.ReasonApplyFailed).Message).To(ContainSubstring("denied the request"))
			f.Expect(f.daemonSets()).To(BeEmpty(), "no work begins that could not be cleaned up")

			f.use()
			f.settle()
			f.expectRunning(v1alpha1.ReasonWorking)
		})
	}
}

// A user removes the finalizer while work runs, and a policy keeps it from being added again. What workers report is recorded
// all the same, what has finished does not run again, and what is to end ends.
func TestDeniedFinalizerKeepsNothingElse(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*goopTestEnv)
		places []string
	}{
		"a result": {func(f *goopTestEnv) { f.kubelet("a/0", hasFinished(3, "")) }, []string{"a/0", "b/0"}},
		"a result whose pod goes": {func(f *goopTestEnv) {
			f.kubelet("a/0", hasFinished(3, ""))
			f.tries(3)
			f.removePod(f.pod("a/0"))
		}, []string{"b/0"}},
		"a deadline": {func(f *goopTestEnv) { f.clock.Step(time.Hour) }, nil},
		"a suspension": {func(f *goopTestEnv) {
			goop := f.goop()
			goop.Spec.Suspend = true
			f.Expect(f.client.Update(f.ctx, goop)).To(Succeed())
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a", "b")
			f.create(cleanup, deadline(1800))
			f.runs("a/0", "b/0")
			f.setFinalizers()
			f.use()
			f.reconciler.Client = gatedClient{interceptor.NewClient(f.watching(), interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
					if _, isGoop := obj.(*v1alpha1.Goop); isGoop {
						return denied(http.StatusForbidden, metav1.StatusReasonForbidden)
					}
					return c.Patch(ctx, obj, patch, opts...)
				},
			})}
			test.change(f)
			f.tries(6)
			f.Expect(f.places()).To(Equal(test.places))
			failed := int32(0)
			if strings.HasPrefix(name, "a result") {
				failed = 1
			}
			f.Expect(f.record().Failed).To(Equal(failed))
			f.Expect(f.goop().Finalizers).To(BeEmpty())
			f.Expect(f.goop().Ended()).To(Equal(name == "a deadline"))
			f.Expect(f.pods).To(HaveKeyWithValue("a/0", BeNumerically("<=", 2)))
		})
	}
}

// tries lets the controller and the DaemonSet controller work, and the time pass by which a try that failed is repeated.
func (f *goopTestEnv) tries(n int) {
	for range n {
		_, err := f.reconcile()
		f.Expect(err == nil || isRejected(err)).To(BeTrue(), "%v", err)
		f.simulateDaemonSets()
		f.clock.Step(time.Minute)
	}
}
