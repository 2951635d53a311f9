package inprocess

import (
	"context"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// quiet discards what controller-runtime logs without a manager.
var quiet = sync.OnceFunc(func() { ctrl.SetLogger(logr.Discard()) })

// withLogger returns a context whose logger writes to the log of the test, until the test ends: an operator may log later.
func withLogger(tb testing.TB, name string) context.Context {
	tb.Helper()
	quiet()
	logger := funcr.New(func(prefix, line string) {
		if tb.Context().Err() == nil {
			tb.Log(prefix, line)
		}
	}, funcr.Options{LogTimestamp: true, TimestampFormat: "15:04:05.000"})
	return logr.NewContext(context.WithoutCancel(tb.Context()), logger.WithName(name))
}
