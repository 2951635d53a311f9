// Package inprocess starts an implementation of the Foo controller inside a test, against the API server of
// internal/testserver. It runs under a ServiceAccount with the permissions of config/rbac and no others, so that a permission
// that is missing there is missing here too.
//
//	account := inprocess.NewAccount(t)
//	running := inprocess.Start(t, account, inprocess.Settings{Implementation: "raw", Namespace: namespace})
//	…
//	running.Stop(t)
package inprocess

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/workbook/01-informers/internal/managed"
	"example.com/workbook/01-informers/internal/operator"
	"example.com/workbook/01-informers/internal/raw"
	"example.com/workbook/01-informers/internal/transport"
)

// implementations are those that cmd/main.go and cmd/raw run.
var implementations = map[string]operator.Run{
	"managed": managed.Run,
	"raw":     raw.Run,
}

// Names are the names of all implementations, sorted.
func Names() []string { return slices.Sorted(maps.Keys(implementations)) }

// Image is the image of the Foos' pods, which do not run here.
const Image = "example.com/foo:test"

// stopTimeout bounds the shutdown of an implementation: it is longer than the drain.
const stopTimeout = 60 * time.Second

// Settings say what to start. Only Implementation must be set.
type Settings struct {
	// Implementation is one of Names.
	Implementation string
	// Namespace confines the operator to one namespace, by changing the paths of its lists and watches of the whole cluster.
	// Tests that run in parallel on one server need it, because each must see its own Foos only. Empty: the whole cluster.
	Namespace string
	// Config changes the configuration of the operator's clients, for instance by a Wrap. It may be nil.
	Config func(*rest.Config)
	// Options changes the options of the implementation. By default there are no metrics, probes and leader election, and a
	// rejected Deployment is tried again 3 times. It may be nil.
	Options func(*operator.Options)
}

// Running is an implementation that runs.
type Running struct {
	cancel context.CancelFunc
	outage transport.Outage
	done   chan struct{}
	err    error
}

// Start starts an implementation, and stops it at the end of the test at the latest. It does not wait until the operator is
// ready.
func Start(tb testing.TB, account *Account, settings Settings) *Running {
	tb.Helper()
	run := implementations[settings.Implementation]
	if run == nil {
		tb.Fatalf("there is no implementation %q, only %v", settings.Implementation, Names())
	}
	options := operator.Options{
		MetricsAddress: "0", ProbeAddress: "0",
		LeaderElectionNamespace: account.Namespace,
		LeaseDuration:           15 * time.Second, RenewDeadline: 6 * time.Second, RetryPeriod: 2 * time.Second,
		Image: Image, Workers: 4, MaxRetries: 3,
	}
	if settings.Options != nil {
		settings.Options(&options)
	}
	r := &Running{done: make(chan struct{})}
	config := account.Config()
	if settings.Config != nil {
		settings.Config(config)
	}
	if settings.Namespace != "" {
		config.Wrap(confine(settings.Namespace))
	}
	r.outage.Attach(config)

	ctx, cancel := context.WithCancel(withLogger(tb, settings.Implementation))
	r.cancel = cancel
	go func() {
		defer close(r.done)
		r.err = run(ctx, config, options)
	}()
	tb.Cleanup(func() {
		cancel()
		if err := r.Wait(); errors.Is(err, errStillRunning) {
			tb.Error(err)
		}
	})
	return r
}

// Stop stops it as SIGTERM does, waits until it has ended, and fails the test if it returns an error. It does nothing if it has
// ended already.
func (r *Running) Stop(tb testing.TB) {
	tb.Helper()
	r.cancel()
	if err := r.Wait(); err != nil {
		tb.Errorf("the operator ended with: %v", err)
	}
}

// Cancel stops it as SIGTERM does, and returns at once.
func (r *Running) Cancel() { r.cancel() }

// Cut closes its connections to the server for good, also during a request: for the server it is as if the process had been
// killed. The operator itself goes on.
func (r *Running) Cut() { r.outage.Begin() }

// Done is closed when it has ended.
func (r *Running) Done() <-chan struct{} { return r.done }

var errStillRunning = fmt.Errorf("the operator has not ended within %s", stopTimeout)

// Wait waits until it has ended by itself or by Cancel, and returns its error.
func (r *Running) Wait() error {
	select {
	case <-r.done:
		return r.err
	case <-time.After(stopTimeout):
		return errStillRunning
	}
}

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
