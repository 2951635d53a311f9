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
	// reconcile brings the actual state in line with the object of this key. Its argument does not say what happened.
	reconcile func(context.Context, cache.ObjectName) error
	// maxRetries is the number of retries of a key that fails, before it is dropped.
	maxRetries int
	// dropped reports a key that failed too often. Its failures are not counted any more.
	dropped func(cache.ObjectName, error)
}

// run starts the workers. It returns after ctx has ended or the queue was shut down, and all reconciliations have
// returned.
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

// next reconciles the next key. It returns false if the queue is shut down and empty.
func (l *loop) next(ctx context.Context) bool {
	// 1. Get: until Done, no other worker gets this key. An Add before Done triggers another reconciliation.
	key, shutdown := l.queue.Get()
	if shutdown {
		return false
	}
	// 2. Done, even after a panic: without it the key is never processed again.
	defer l.queue.Done(key)
	// 3. After ctx has ended, waiting keys are skipped: the first list of the next process adds all keys again.
	if ctx.Err() != nil {
		return true
	}
	err := l.reconcile(ctx, key)
	switch {
	// 4. Success: reset the failures of the key.
	case err == nil:
		l.queue.Forget(key)
	// 5. Failure: retry later. The rate limiter counts the failures.
	case l.queue.NumRequeues(key) < l.maxRetries:
		l.queue.AddRateLimited(key)
	// 6. Too many failures: drop the key and report it. Forget gives the next event all retries.
	default:
		l.queue.Forget(key)
		l.dropped(key, err)
	}
	return true
}

// newQueue returns a queue with a short back-off.
func newQueue() queue {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](time.Millisecond, 20*time.Millisecond),
		workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "lesson"})
}

var errNotYet = errors.New("not yet")

// loop reconciles three keys, which fail a different number of times.
func (s steps) loop(ctx context.Context) error {
	s.Printf("\n7. The loop: 4 workers, at most 5 retries\n")
	failures := []struct {
		key   cache.ObjectName
		times int
	}{
		{cache.NewObjectName("shop", "healthy"), 0},
		{cache.NewObjectName("shop", "flaky"), 3},
		{cache.NewObjectName("shop", "hopeless"), 1000},
	}
	var lock sync.Mutex
	reconciled, dropped := map[cache.ObjectName]int{}, map[cache.ObjectName]bool{}
	settled := make(chan struct{}, len(failures))
	loop := &loop{queue: newQueue(), maxRetries: 5}
	loop.reconcile = func(_ context.Context, key cache.ObjectName) error {
		lock.Lock()
		defer lock.Unlock()
		reconciled[key]++
		for _, failure := range failures {
			if failure.key == key && reconciled[key] <= failure.times {
				return errNotYet
			}
		}
		settled <- struct{}{}
		return nil
	}
	loop.dropped = func(key cache.ObjectName, _ error) {
		lock.Lock()
		defer lock.Unlock()
		dropped[key] = true
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
		return fmt.Errorf("running the loop: %w", err)
	}
	for _, failure := range failures {
		s.Printf("   %-14s reconciliations: %d, dropped: %-5t failures counted: %d\n",
			failure.key, reconciled[failure.key], dropped[failure.key], loop.queue.NumRequeues(failure.key))
	}
	return nil
}
