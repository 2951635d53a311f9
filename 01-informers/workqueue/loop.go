package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// loop is the classic loop of a controller.
type loop struct {
	queue queue
	// reconcile brings the world to what the object of this key says now. It is told no event.
	reconcile func(context.Context, cache.ObjectName) error
	// maxRetries is how often a key that fails is tried again before giveUp.
	maxRetries int
	// giveUp is told of a key that failed too often. The next event for that key starts from zero.
	giveUp func(cache.ObjectName, error)
}

// run works with so many workers until ctx ends or the queue is shut down, and returns when every pass is
// over.
func (l *loop) run(ctx context.Context, workers int) {
	stop := context.AfterFunc(ctx, l.queue.ShutDown)
	defer stop()
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for l.next(ctx) {
			}
		})
	}
	wg.Wait()
}

// next makes one pass. It returns false when there will be no more.
func (l *loop) next(ctx context.Context) bool {
	// 1. Get: from here on the key is this worker's. Whoever adds it now marks it for another pass.
	key, shutdown := l.queue.Get()
	if shutdown {
		return false
	}
	// 2. Done, whatever comes: a key without Done is never worked on again.
	defer l.queue.Done(key)
	// 3. After the end, what still waits is left: the first list of the next run brings every key again.
	if ctx.Err() != nil {
		return true
	}
	err := l.reconcile(ctx, key)
	switch {
	// 4. It went well: the failures of the past no longer count.
	case err == nil:
		l.queue.Forget(key)
	// 5. It failed: again, later. The limiter counts.
	case l.queue.NumRequeues(key) < l.maxRetries:
		l.queue.AddRateLimited(key)
	// 6. It failed too often: let go, and say so. Without Forget the next event would meet a full count.
	default:
		l.queue.Forget(key)
		l.giveUp(key, err)
	}
	return true
}

// newQueue is a queue whose back-off suits a lesson.
func newQueue() queue {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](time.Millisecond, 20*time.Millisecond),
		workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "lesson"})
}

// errNotYet is what a pass of this lesson fails with.
var errNotYet = errors.New("not yet")

// runLoop lets keys fail a number of times and says what became of each.
func runLoop(ctx context.Context) ([]string, error) {
	failures := []struct {
		key   cache.ObjectName
		times int
	}{
		{cache.NewObjectName("shop", "healthy"), 0},
		{cache.NewObjectName("shop", "flaky"), 3},
		{cache.NewObjectName("shop", "hopeless"), 1000},
	}
	var lock sync.Mutex
	passes, givenUp := map[cache.ObjectName]int{}, map[cache.ObjectName]bool{}
	settled := make(chan struct{}, len(failures))
	loop := &loop{queue: newQueue(), maxRetries: 5}
	loop.reconcile = func(_ context.Context, key cache.ObjectName) error {
		lock.Lock()
		defer lock.Unlock()
		passes[key]++
		for _, failure := range failures {
			if failure.key == key && passes[key] <= failure.times {
				return errNotYet
			}
		}
		settled <- struct{}{}
		return nil
	}
	loop.giveUp = func(key cache.ObjectName, _ error) {
		lock.Lock()
		defer lock.Unlock()
		givenUp[key] = true
		settled <- struct{}{}
	}

	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, failure := range failures {
		loop.queue.Add(failure.key)
	}
	go func() {
		for range failures {
			select {
			case <-settled:
			case <-ctx.Done():
			}
		}
		loop.queue.ShutDown()
	}()
	loop.run(ctx, 4)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	outcomes := make([]string, len(failures))
	for i, failure := range failures {
		outcomes[i] = fmt.Sprintf("%-14s passes: %d, given up: %-5t failures remembered: %d",
			failure.key, passes[failure.key], givenUp[failure.key], loop.queue.NumRequeues(failure.key))
	}
	return outcomes, nil
}
