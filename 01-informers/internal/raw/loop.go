package raw

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"example.com/workbook/01-informers/internal/foo"
)

const (
	// queueName is the label of the queue's metrics. A queue without a name has none.
	queueName = "foo"

	// reconcileTimeout bounds one reconciliation: a request that hangs must not keep a worker busy.
	reconcileTimeout = time.Minute

	// drainTimeout bounds the reconciliations under way when the controller is stopped. The whole shutdown has to fit into
	// the pod's terminationGracePeriodSeconds.
	drainTimeout = 5 * time.Second
)

// queue holds keys. One that is added many times is in it once, and no two workers have the same one at a time.
type queue = workqueue.TypedRateLimitingInterface[cache.ObjectName]

func newQueue() queue {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		// The longest delay is 30 s, so that a user need not wait long after the cause of a failure is removed. With
		// DefaultTypedControllerRateLimiter it is more than a quarter of an hour. That also limits the retries of all keys
		// together, to 10 per second, to protect the API server, which API Priority and Fairness protects already.
		workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](foo.FirstRetry, foo.LongestRetry),
		// The provider is set here, and not by workqueue.SetProvider: see metrics.go.
		workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: queueName, MetricsProvider: queueMetrics{}},
	)
}

// loop has workers that take keys from the queue and reconcile them.
type loop struct {
	queue queue
	// reconcile is controller.reconcile, except in unit tests of the loop.
	reconcile func(ctx context.Context, key cache.ObjectName) (requeueAfter time.Duration, err error)
}

// run reconciles Foos until ctx or leading ends. When ctx ends, no reconciliation begins, and those under way may take
// drainTimeout. When leading ends, they are canceled at once, because another replica is about to begin. It returns when no
// reconciliation is under way.
func (l *loop) run(ctx, leading context.Context, workers int) {
	working, cancel := context.WithCancel(leading)
	defer cancel()
	accepting, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(leading, stop)()

	var group sync.WaitGroup
	for range workers {
		group.Go(func() { l.runWorker(accepting, working) })
	}
	<-accepting.Done()
	l.queue.ShutDown()
	drained := time.AfterFunc(drainTimeout, cancel)
	defer drained.Stop()
	group.Wait()
}

// runWorker takes keys from the queue until it is shut down. A queue that is shut down still returns the keys in it (ShutDown
// in util/workqueue/queue.go). They are dropped, because the next leader gets all keys from its own informers.
func (l *loop) runWorker(accepting, working context.Context) {
	for {
		key, shutDown := l.queue.Get()
		if shutDown {
			return
		}
		if accepting.Err() == nil && working.Err() == nil {
			l.processKey(working, key)
		}
		// Until Done, no other worker gets the key, and an event for it waits.
		l.queue.Done(key)
	}
}

// processKey reconciles one key, and decides when it is reconciled again without an event.
func (l *loop) processKey(working context.Context, key cache.ObjectName) {
	ctx, cancel := context.WithTimeout(working, reconcileTimeout)
	defer cancel()
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "foo", key)
	ctx = klog.NewContext(ctx, logger)

	requeueAfter, err := l.recovering(ctx, key)
	if working.Err() != nil {
		logger.Info("The reconciliation was canceled", "err", err)
		return
	}
	if err != nil {
		logger.Error(err, "The reconciliation failed and will be tried again", "failures", l.queue.NumRequeues(key)+1)
		l.queue.AddRateLimited(key)
		return
	}
	// Forget resets the back-off of the key. The queue still needs Done.
	l.queue.Forget(key)
	if requeueAfter > 0 {
		l.queue.AddAfter(key, requeueAfter)
	}
}

// recovering turns a panic into an error, so that one Foo does not stop the reconciliation of all others.
func (l *loop) recovering(ctx context.Context, key cache.ObjectName) (requeueAfter time.Duration, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("a panic: %v\n%s", r, debug.Stack())
		}
	}()
	return l.reconcile(ctx, key)
}
