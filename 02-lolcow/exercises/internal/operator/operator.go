// Package operator runs a reader's controller in a manager, for checks: its requests go through a wire, and what happens to its
// queue is noted.
package operator

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/exercises/internal/lab"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Setup adds a controller to a manager. It passes options on to it.
type Setup = func(mgr ctrl.Manager, options controller.Options) error

// patience is how long the queue of a controller may take until it is there, or empty.
const patience = 5 * time.Second

// Operator is a manager with the reader's controller, in one namespace.
type Operator struct {
	// Wire has the requests of the controller.
	Wire *kube.Wire
	// Stop ends the manager, and waits for its end.
	Stop func()

	b    *check.B
	seen int
	made atomic.Pointer[Queue]
}

// Start starts a manager with the reader's controller. It remembers nothing of one before.
func Start(b *check.B, namespace string, setup Setup, logger logr.Logger) *Operator {
	b.Event("the controller starts")
	ctrl.SetLogger(logr.Discard())
	o := &Operator{b: b, Wire: kube.NewWire(b)}
	mgr, err := ctrl.NewManager(o.Wire.Config(), ctrl.Options{
		Scheme:  lab.Scheme(),
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Metrics: server.Options{BindAddress: "0"},
		Logger:  logger,
		// How long it takes to stop is not what is checked.
		GracefulShutdownTimeout: new(time.Duration(-1)),
	})
	if err != nil {
		b.Fatalf("making a manager: %v", err)
	}
	err = setup(mgr, controller.Options{
		SkipNameValidation: new(true), // there is a manager for each behaviour
		NewQueue: func(_ string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			o.made.Store(newQueue(b, limiter))
			return o.made.Load()
		},
	})
	if err != nil {
		b.Fatalf("Setup returned an error: %v", err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	stopped := b.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			b.Errorf("the manager returned an error: %v", err)
		}
	})
	o.Stop = sync.OnceFunc(func() {
		cancel()
		<-stopped
		b.Event("the controller has stopped")
	})
	b.Cleanup(o.Stop)
	return o
}

// Queue is the controller's. It is made when the manager starts.
func (o *Operator) Queue() *Queue {
	o.b.Eventually(patience, func() string {
		if o.made.Load() == nil {
			return "the controller has no queue: Setup did not pass options on to it"
		}
		return ""
	})
	return o.made.Load()
}

// Reconcile puts a key into the queue, waits until the queue is empty, and returns the first write that was sent, or an empty
// string.
func (o *Operator) Reconcile(request reconcile.Request) string {
	o.seen = len(o.Wire.Requests())
	before := o.Queue().HandedOut()
	o.b.Event("the check puts the key into the queue")
	o.Queue().Add(request)
	o.Idle(before + 1)
	return o.Write()
}

// Idle waits until that many keys have been handed out since the start, and none is waiting or at work.
func (o *Operator) Idle(count int) {
	queue := o.Queue()
	o.b.Eventually(patience, func() string { return queue.busy(count) })
}

// Write returns the first write since the start, or in the last call of Reconcile, or an empty string.
func (o *Operator) Write() string {
	for _, request := range o.Wire.Requests()[o.seen:] {
		if kube.Writes(request) {
			return request.String()
		}
	}
	return ""
}
