package controller

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// denials are responses of the API server to a request that an admission webhook denies with a code and a reason of its
// choice.
func denials() map[string]error {
	all := map[string]error{}
	for reason, code := range map[metav1.StatusReason]int32{
		metav1.StatusReasonNotFound: http.StatusNotFound, metav1.StatusReasonConflict: http.StatusConflict,
		metav1.StatusReasonAlreadyExists: http.StatusConflict, metav1.StatusReasonForbidden: http.StatusForbidden,
		metav1.StatusReasonUnknown: http.StatusBadRequest,
	} {
		all[fmt.Sprintf("%d %s", code, reason)] = &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: code, Reason: reason, Message: `admission webhook "w.example.com" denied the request: not on a Monday`,
		}}
	}
	return all
}

// A webhook denies a request with the code for an object that does not exist, or another one. The status has the
// webhook's message nevertheless.
func TestDenialIsReportedWhateverItsCode(t *testing.T) {
	t.Parallel()
	for response, denial := range denials() {
		for verb, test := range map[string]struct {
			before func(*goopTestEnv)
			funcs  interceptor.Funcs
		}{
			"create": {func(f *goopTestEnv) { f.submitQuietly() }, interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return denial },
			}},
			"finalizer": {func(f *goopTestEnv) { f.submitQuietly(cleanup) }, interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return denial
				},
			}},
			"record": {func(f *goopTestEnv) {
				f.create()
				f.kubelet("a/0", hasFinished(0, ""))
			}, interceptor.Funcs{
				Update: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.UpdateOption) error {
					if _, isRecord := object.(*corev1.ConfigMap); isRecord {
						return denial
					}
					return c.Update(ctx, object, opts...)
				},
			}},
			"delete": {func(f *goopTestEnv) {
				f.create()
				f.setFinalizers(othersFinalizer)
				f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
			}, interceptor.Funcs{
				Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return denial },
			}},
		} {
			t.Run(verb+" "+response, func(t *testing.T) {
				t.Parallel()
				f := newGoopTestEnv(t, "a")
				test.before(f)
				f.clock.Step(2 * writeInterval)
				f.use()
				f.reconciler.Client = interceptor.NewClient(f.watching(), test.funcs)
				_, err := f.reconcile()
				f.Expect(err).To(HaveOccurred(), "it is retried")
				running := conditionOf(f.goop().Status.Conditions, v1alpha1.ConditionRunning)
				f.Expect(running.Reason).To(Equal(v1alpha1.ReasonApplyFailed), running.Message)
				f.Expect(running.Message).To(ContainSubstring("not on a Monday"))
			})
		}
	}
}

// submitQuietly creates the Goop without running a controller.
func (f *goopTestEnv) submitQuietly(change ...func(*v1alpha1.GoopSpec)) {
	f.Expect(f.client.Create(f.ctx, &v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: f.namespace}, Spec: f.spec(change...)})).To(Succeed())
}
