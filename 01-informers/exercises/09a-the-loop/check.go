// Package theloop is exercise 09a: one turn of the loop of a controller.
package theloop

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"

	"example.com/workbook/shared/exercise/check"
)

// Entry is what the reader writes.
type Entry func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string],
	reconcile func(ctx context.Context, key string) error, maxRetries int) bool

const (
	key        = "shop/a"
	maxRetries = 3
	// patience is for what comes in any case: the queue's delays are a few milliseconds.
	patience = 2 * time.Second
)

var errFlaky = errors.New("the API server does not respond")

// Check checks one turn of the loop.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("a key that is added is reconciled, and ProcessNext returns true", func(b *check.B) {
		l := newLoop(b, work.Entry, 0)
		l.queue.TypedRateLimitingInterface.Add(key)
		if !l.turn() {
			b.Fatalf("ProcessNext returned false for a key that was waiting: its worker ends")
		}
		l.expect(1)
	})
	if !ok {
		return
	}
	t.Behaviour("a key that fails is tried again", func(b *check.B) {
		l := newLoop(b, work.Entry, 2)
		l.queue.TypedRateLimitingInterface.Add(key)
		l.turns(3)
		l.expect(3)
	})
	t.Behaviour("each failure in a row makes the delay longer", func(b *check.B) {
		l := newLoop(b, work.Entry, maxRetries)
		l.queue.TypedRateLimitingInterface.Add(key)
		for failures := 1; failures <= maxRetries; failures++ {
			l.turns(1)
			if l.queue.added.Load() {
				b.Fatalf("after a failure Add was called: it hands the key out at once, whatever the rate limiter remembers")
			}
			if n := l.queue.NumRequeues(key); n != failures {
				b.Fatalf("after %d failures in a row the rate limiter remembers %d", failures, n)
			}
		}
	})
	t.Behaviour("a key that recovers starts from zero at its next failure", func(b *check.B) {
		l := newLoop(b, work.Entry, 2)
		l.queue.TypedRateLimitingInterface.Add(key)
		l.turns(3)
		l.expect(3)
		if n := l.queue.NumRequeues(key); n != 0 {
			b.Fatalf("the key failed twice, then a reconciliation succeeded, and the rate limiter still remembers %d failures", n)
		}
	})
	t.Behaviour("a key that only fails is given up after maxRetries retries", func(b *check.B) {
		l := newLoop(b, work.Entry, 100)
		l.queue.TypedRateLimitingInterface.Add(key)
		for before := -1; before < l.limited(); {
			if before = l.limited(); before > 2*maxRetries {
				b.Fatalf("with maxRetries %d the key was retried %d times, and it is still not given up", maxRetries, before)
			}
			l.turns(1)
		}
		if n := l.limited(); n != maxRetries {
			b.Fatalf("with maxRetries %d AddRateLimited was called %d times", maxRetries, n)
		}
		l.expect(maxRetries + 1)
		if n := l.queue.NumRequeues(key); n != 0 {
			b.Fatalf("the key was given up, and the rate limiter still remembers %d failures: its next event starts with them", n)
		}
	})
	checkWorkers(t, work.Entry)
}

// checkWorkers checks what a second worker, or the next key of this one, depends on.
func checkWorkers(t *check.T, entry Entry) {
	t.Behaviour("a key that is added while it is reconciled is reconciled once more", func(b *check.B) {
		l := newLoop(b, entry, 0)
		l.during = func() { l.queue.TypedRateLimitingInterface.Add(key) }
		l.queue.TypedRateLimitingInterface.Add(key)
		l.turns(2)
		l.expect(2)
	})
	t.Behaviour("no other worker gets the key before its reconciliation has returned", func(b *check.B) {
		l := newLoop(b, entry, 0)
		waiting := 0
		l.during = func() {
			l.queue.TypedRateLimitingInterface.Add(key)
			waiting = l.queue.Len()
		}
		l.queue.TypedRateLimitingInterface.Add(key)
		l.turns(1)
		if waiting > 0 {
			b.Fatalf("Done was called before reconcile: the key was added again, and another worker can get it at once")
		}
	})
	t.Behaviour("Done is called once for each key that the queue hands out", func(b *check.B) {
		l := newLoop(b, entry, 1)
		l.queue.TypedRateLimitingInterface.Add(key)
		l.turns(2)
		if n := l.queue.keysTaken(); n < 0 {
			b.Fatalf("Done was called %d times too often: it releases a key that another worker may have by then", -n)
		}
	})
	t.Behaviour("ProcessNext returns true after a failure, and when it gives a key up", func(b *check.B) {
		l := newLoop(b, entry, 100)
		l.queue.TypedRateLimitingInterface.Add(key)
		for failures := 1; failures <= maxRetries+1; failures++ {
			if !l.turns(1) {
				b.Fatalf("after %d failures in a row, with maxRetries %d, ProcessNext returned false: its worker ends", failures, maxRetries)
			}
		}
	})
	t.Behaviour("keys that wait when the queue is shut down are reconciled", func(b *check.B) {
		l := newLoop(b, entry, 0)
		l.queue.TypedRateLimitingInterface.Add(key)
		l.queue.TypedRateLimitingInterface.Add("shop/b")
		b.Event("shutting the queue down, with 2 keys in it")
		l.queue.ShutDown()
		ended := b.Go(func() {
			for l.turn() {
			}
		})
		l.await(ended, "the queue was shut down and is empty, and ProcessNext does not return false")
		if n := l.queue.Len(); n > 0 {
			b.Fatalf("ProcessNext returned false, and %d keys are still in the queue", n)
		}
		l.expect(2)
	})
	t.Behaviour("after a failure the queue can be drained", func(b *check.B) {
		l := newLoop(b, entry, 1)
		l.queue.TypedRateLimitingInterface.Add(key)
		if !l.turn() {
			b.Fatalf("ProcessNext returned false for a key that was waiting: its worker ends")
		}
		drained := b.Go(l.queue.ShutDownWithDrain)
		ended := b.Go(func() {
			for l.turn() {
			}
		})
		l.await(ended, "the queue was shut down, and ProcessNext does not return false")
		l.await(drained, "ShutDownWithDrain does not return: the queue thinks that a worker still has a key")
	})
}

// loop is a queue with a reconciliation that fails some times.
type loop struct {
	b     *check.B
	entry Entry
	queue *recordingQueue
	// during is called in the first reconciliation.
	during func()

	mu       sync.Mutex
	failures int
	count    int
}

func newLoop(b *check.B, entry Entry, failures int) *loop {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Millisecond, 10*time.Millisecond)
	queue := &recordingQueue{TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueue(limiter), b: b}
	b.Cleanup(queue.ShutDown)
	return &loop{b: b, entry: entry, queue: queue, failures: failures}
}

func (l *loop) reconcile(_ context.Context, key string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	if l.during != nil && l.count == 1 {
		l.during()
	}
	if l.failures > 0 {
		l.failures--
		l.b.Event("reconcile %s: %v", key, errFlaky)
		return errFlaky
	}
	l.b.Event("reconcile %s: no error", key)
	return nil
}

func (l *loop) turn() bool { return l.entry(l.b.Context(), l.queue, l.reconcile, maxRetries) }

// turns calls ProcessNext n times, and says whether the last call returned true. It does not wait for a key that never comes.
func (l *loop) turns(n int) bool {
	again := false
	for range n {
		done := l.b.Go(func() { again = l.turn() })
		l.await(done, "the key is not handed out again: ProcessNext waits for one")
		if l.queue.keysTaken() > 0 {
			l.b.Fatalf("ProcessNext returned without Done: the queue does not hand the key out again")
		}
	}
	return again
}

func (l *loop) await(done <-chan struct{}, otherwise string) {
	l.b.Eventually(patience, func() string {
		select {
		case <-done:
			return ""
		default:
			return otherwise
		}
	})
}

func (l *loop) expect(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count != n {
		l.b.Fatalf("the key was reconciled %d times, and not %d times", l.count, n)
	}
}

func (l *loop) limited() int {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	return l.queue.limited
}

// recordingQueue notes what it is told.
type recordingQueue struct {
	workqueue.TypedRateLimitingInterface[string]
	b *check.B

	mu      sync.Mutex
	limited int
	// taken is how many keys workers have.
	taken int
	// added is set if the reader's code calls Add.
	added atomic.Bool
}

func (q *recordingQueue) Add(key string) {
	q.b.Event("Add(%s)", key)
	q.added.Store(true)
	q.TypedRateLimitingInterface.Add(key)
}

func (q *recordingQueue) Get() (string, bool) {
	key, shutdown := q.TypedRateLimitingInterface.Get()
	if !shutdown {
		q.mu.Lock()
		q.taken++
		q.mu.Unlock()
	}
	return key, shutdown
}

func (q *recordingQueue) keysTaken() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.taken
}

func (q *recordingQueue) Done(key string) {
	q.b.Event("Done(%s)", key)
	q.mu.Lock()
	q.taken--
	q.mu.Unlock()
	q.TypedRateLimitingInterface.Done(key)
}

func (q *recordingQueue) Forget(key string) {
	q.b.Event("Forget(%s)", key)
	q.TypedRateLimitingInterface.Forget(key)
}

func (q *recordingQueue) AddRateLimited(key string) {
	q.mu.Lock()
	q.limited++
	q.mu.Unlock()
	q.b.Event("AddRateLimited(%s)", key)
	q.TypedRateLimitingInterface.AddRateLimited(key)
}
