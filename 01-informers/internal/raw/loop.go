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

	// passTimeout is the longest that one pass may take: a request that hangs must not hold a worker.
	passTimeout = time.Minute

	// drainTimeout is the longest that passes under way may take after the controller was told to end. With
	// the other parts of an end it has to fit into the pod's terminationGracePeriodSeconds.
	drainTimeout = 5 * time.Second
)

// queue holds keys. One that is added many times is in it once, and no two workers have the same one at a time.
type queue = workqueue.TypedRateLimitingInterface[cache.ObjectName]

func newQueue() queue {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		// No wait is longer than a user's patience: that of DefaultTypedControllerRateLimiter grows to a
		// quarter of an hour, and its other half, a bucket of 10 a second, is there to spare the API server,
		// which has a fairness of its own.
		workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](foo.FirstRetry, foo.LongestRetry),
		// The provider is given and not left to workqueue.SetProvider: see metrics.go.
		workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: queueName, MetricsProvider: queueMetrics{}},
	)
}

// loop has workers take keys from the queue and make a pass over each.
type loop struct {
	queue queue
	// reconcile makes one pass. It returns when to come back, 0 for when an event says so.
	reconcile func(ctx context.Context, key cache.ObjectName) (again time.Duration, err error)
}

// run works on Foos until ctx or leading ends. After ctx no new pass begins, and those under way may go on for
// drainTimeout. After leading they are cut short at once: another replica is about to begin. It returns
// when no pass is under way any more.
func (l *loop) run(ctx, leading context.Context, workers int) {
	passes, cut := context.WithCancel(leading)
	defer cut()
	accepting, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(leading, stop)()

	var group sync.WaitGroup
	for range workers {
		group.Go(func() { l.work(accepting, passes) })
	}
	<-accepting.Done()
	l.queue.ShutDown()
	bound := time.AfterFunc(drainTimeout, cut)
	defer bound.Stop()
	group.Wait()
}

// work takes keys from the queue until it is shut down. A queue that is shut down still hands out what is in
// it (ShutDown in util/workqueue/queue.go says so): those keys are put away, as the next leader finds all of
// them by its own informers.
func (l *loop) work(accepting, passes context.Context) {
	for {
		key, shutDown := l.queue.Get()
		if shutDown {
			return
		}
		if accepting.Err() == nil && passes.Err() == nil {
			l.pass(passes, key)
		}
		// Until Done, no other worker gets the key, and an event for it waits.
		l.queue.Done(key)
	}
}

// pass makes one pass and decides when there will be another without an event.
func (l *loop) pass(passes context.Context, key cache.ObjectName) {
	ctx, cancel := context.WithTimeout(passes, passTimeout)
	defer cancel()
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "foo", key)
	ctx = klog.NewContext(ctx, logger)

	again, err := l.recovering(ctx, key)
	if passes.Err() != nil {
		logger.Info("The pass was cut short", "err", err)
		return
	}
	if err != nil {
		logger.Error(err, "The pass failed and will be tried again", "failures", l.queue.NumRequeues(key)+1)
		l.queue.AddRateLimited(key)
		return
	}
	// The rate limiter forgets how often the key failed; it has nothing to do with Done.
	l.queue.Forget(key)
	if again > 0 {
		l.queue.AddAfter(key, again)
	}
}

// recovering makes an error of a panic, so that one Foo cannot keep the controller from all others.
func (l *loop) recovering(ctx context.Context, key cache.ObjectName) (again time.Duration, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("a panic: %v\n%s", r, debug.Stack())
		}
	}()
	return l.reconcile(ctx, key)
}
