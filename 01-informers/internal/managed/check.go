package managed

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
)

// check lists one Foo, so that what will not come right by itself ends the process with a clear message: no
// such cluster, an unknown user, a missing right, no such kind. A manager would wait for its caches for two
// minutes, and say it in the log only.
func check(ctx context.Context, server client.Reader) error {
	err := server.List(ctx, &v1alpha1.FooList{}, client.Limit(1))
	// An end that came meanwhile is no failure.
	if ctx.Err() == nil {
		return foo.StartError(err)
	}
	return nil
}
