package controller

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/03-flux/api/v1alpha1"
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

// A webhook denies a request with a code that usually means that the object does not exist or has changed. The denial
// is reported in the status with the webhook's message.
func TestDenialIsReportedWhateverItsCode(t *testing.T) {
	t.Parallel()
	for response, denial := range denials() {
		for verb, test := range map[string]struct {
			before func(*setupTestEnv)
			funcs  interceptor.Funcs
		}{
			"create": {func(*setupTestEnv) {}, interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return denial },
			}},
			"apply": {func(*setupTestEnv) {}, interceptor.Funcs{
				Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
					return denial
				},
			}},
			"start": {func(*setupTestEnv) {}, interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return denial
				},
			}},
			"change": {func(b *setupTestEnv) {
				b.running()
				b.change(func(spec *v1alpha1.FluxSetupSpec) { spec.ActiveDeadlineSeconds = new(int64(600)) })
			}, interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return denial
				},
			}},
			"delete a Job": {func(b *setupTestEnv) {
				b.running()
				b.suspend()
			}, interceptor.Funcs{
				Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return denial },
			}},
			"delete a Service": {func(b *setupTestEnv) {
				b.running()
				b.suspend()
				b.reconcile()
				b.collect()
			}, interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
					if _, isJob := object.(*batchv1.Job); isJob {
						return c.Delete(ctx, object, opts...)
					}
					return denial
				},
			}},
		} {
			t.Run(verb+" "+response, func(t *testing.T) {
				t.Parallel()
				b := newSetupTestEnv(t, fluxOf(1))
				test.before(b)
				b.reconciler = b.newReconciler(b.through(test.funcs))
				_, err := b.try()
				b.Expect(err).To(HaveOccurred(), "it is retried")
				b.Expect(b.expect(v1alpha1.ConditionConfigured, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)).To(ContainSubstring("not on a Monday"))
			})
		}
	}
}
