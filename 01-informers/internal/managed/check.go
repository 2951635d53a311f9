package managed

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
)

// check lists one Foo, so that a cause that waiting does not remove ends the process with a clear message: no such cluster,
// an unknown user, a missing permission, no CRD. A manager would wait for its caches for two minutes, and report the cause
// only in the log.
func check(ctx context.Context, server client.Reader) error {
	err := server.List(ctx, &v1alpha1.FooList{}, client.Limit(1))
	// A shutdown in between is no failure.
	if ctx.Err() == nil {
		return foo.StartError(err)
	}
	return nil
}
