package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"example.com/workbook/01-informers/internal/lesson"
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
	return newQueueWith(workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](time.Millisecond, 20*time.Millisecond))
}

var errNotYet = errors.New("not yet")

// loop reconciles three keys, which fail a different number of times.
func (s steps) loop(ctx context.Context) {
	s.Printf("\n7. The loop: 4 workers, at most 5 retries\n")
	names := []string{"healthy", "flaky", "hopeless"}
	failures := map[string]int{"flaky": 3, "hopeless": 1000}
	var lock sync.Mutex
	reconciled, dropped := map[string]int{}, map[string]bool{}
	loop := &loop{queue: newQueue(), maxRetries: 5}
	unsettled := len(names)
	settle := func() {
		if unsettled--; unsettled == 0 {
			loop.queue.ShutDown()
		}
	}
	loop.reconcile = func(_ context.Context, key cache.ObjectName) error {
		lock.Lock()
		defer lock.Unlock()
		reconciled[key.Name]++
		if reconciled[key.Name] <= failures[key.Name] {
			return errNotYet
		}
		settle()
		return nil
	}
	loop.dropped = func(key cache.ObjectName, _ error) {
		lock.Lock()
		defer lock.Unlock()
		dropped[key.Name] = true
		settle()
	}

	ctx, cancel := context.WithTimeout(ctx, lesson.Patience)
	defer cancel()
	for _, name := range names {
		loop.queue.Add(cache.NewObjectName("shop", name))
	}
	loop.run(ctx, 4)
	lesson.Check(ctx.Err())
	for _, name := range names {
		key := cache.NewObjectName("shop", name)
		s.Printf("   %-14s reconciliations: %d, dropped: %-5t failures counted: %d\n",
			key, reconciled[name], dropped[name], loop.queue.NumRequeues(key))
	}
}
