package controller

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// A condition refers to an object by kind and name, as users do.
func TestErrorsNameTheKind(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t)
	failure := errors.New("no connection")
	c := interceptor.NewClient(f.watching(), interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return failure
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return failure },
	})
	daemonSet := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "job-0", Namespace: f.namespace}}
	_, err := patchDependent(f.ctx, c, fieldOwner, daemonSet, nil, nil)
	f.Expect(err).To(MatchError("changing DaemonSet job-0: no connection"))
	f.Expect(deleteDependent(f.ctx, c, daemonSet)).To(MatchError("deleting DaemonSet job-0: no connection"))
}
