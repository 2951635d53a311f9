package feed

import (
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Timer is a key that is due at a time.
type Timer struct {
	Key reconcile.Request
	At  time.Time
}

// Queue is a work queue that hands a key to its worker when Hand is called, and not before. Its timers go by a clock that
// is stepped.
type Queue struct {
	Name    string
	limiter workqueue.TypedRateLimiter[reconcile.Request]
	now     func() time.Time

	mu         sync.Mutex
	ready      []reconcile.Request
	added      []reconcile.Request // since the last Sort
	processing map[reconcile.Request]bool
	again      []reconcile.Request
	timers     []Timer
	down       bool

	hand   chan reconcile.Request
	parked chan struct{}
	done   chan struct{}
	stop   chan struct{}
}

var _ workqueue.TypedRateLimitingInterface[reconcile.Request] = (*Queue)(nil)

// NewQueue returns a queue for one worker.
func NewQueue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request], now func() time.Time) *Queue {
	return &Queue{
		Name: name, limiter: limiter, now: now, processing: map[reconcile.Request]bool{},
		hand: make(chan reconcile.Request), parked: make(chan struct{}, 1), done: make(chan struct{}, 1), stop: make(chan struct{}),
	}
}

// Sort puts the keys that were added since the last call in order: which of two handlers of one event was first
// is decided by the start of goroutines.
func (q *Queue) Sort() {
	q.mu.Lock()
	defer q.mu.Unlock()
	slices.SortFunc(q.added, func(a, b reconcile.Request) int { return compare(a.String(), b.String()) })
	q.ready = append(q.ready, q.added...)
	q.added = nil
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Ready returns the keys that could be handed out, in order.
func (q *Queue) Ready() []reconcile.Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append(slices.Clone(q.ready), q.added...)
}

// Timers returns the keys that are due later.
func (q *Queue) Timers() []Timer {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.timers)
}

// Fire makes the keys ready that are due.
func (q *Queue) Fire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	var later, due []Timer
	for _, timer := range q.timers {
		if timer.At.After(now) {
			later = append(later, timer)
		} else {
			due = append(due, timer)
		}
	}
	q.timers = later
	slices.SortStableFunc(due, func(a, b Timer) int { return a.At.Compare(b.At) })
	for _, timer := range due {
		q.addLocked(timer.Key)
	}
}

// Hand hands a key to the worker. When it has been processed, Done has a value.
func (q *Queue) Hand(key reconcile.Request) {
	q.mu.Lock()
	for _, list := range []*[]reconcile.Request{&q.ready, &q.added} {
		*list = slices.DeleteFunc(*list, func(one reconcile.Request) bool { return one == key })
	}
	q.processing[key] = true
	q.mu.Unlock()
	select {
	case q.hand <- key:
	case <-q.stop:
	}
}

// Processed has a value when what was handed out has been processed.
func (q *Queue) Processed() <-chan struct{} { return q.done }

// Parked has a value when the worker waits for its first key.
func (q *Queue) Parked() <-chan struct{} { return q.parked }

// Get waits for Hand.
func (q *Queue) Get() (reconcile.Request, bool) {
	select {
	case q.parked <- struct{}{}:
	default:
	}
	select {
	case key := <-q.hand:
		return key, false
	case <-q.stop:
		return reconcile.Request{}, true
	}
}

// Add makes a key ready, once.
func (q *Queue) Add(key reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.addLocked(key)
}

func (q *Queue) addLocked(key reconcile.Request) {
	switch {
	case q.down, slices.Contains(q.ready, key), slices.Contains(q.added, key):
	case q.processing[key]:
		if !slices.Contains(q.again, key) {
			q.again = append(q.again, key)
		}
	default:
		q.added = append(q.added, key)
	}
}

// AddAfter makes a key ready after a time. The earlier of two times for one key counts, as in a real queue.
func (q *Queue) AddAfter(key reconcile.Request, after time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if after <= 0 {
		q.addLocked(key)
		return
	}
	at := q.now().Add(after)
	for i, timer := range q.timers {
		if timer.Key == key {
			if at.Before(timer.At) {
				q.timers[i].At = at
			}
			return
		}
	}
	q.timers = append(q.timers, Timer{Key: key, At: at})
}

// AddRateLimited makes a key ready when the rate limiter says so.
func (q *Queue) AddRateLimited(key reconcile.Request) { q.AddAfter(key, q.limiter.When(key)) }

// Forget ends what the rate limiter knows of a key.
func (q *Queue) Forget(key reconcile.Request) { q.limiter.Forget(key) }

// NumRequeues is what the rate limiter knows of a key.
func (q *Queue) NumRequeues(key reconcile.Request) int { return q.limiter.NumRequeues(key) }

// Done says that a key has been processed.
func (q *Queue) Done(key reconcile.Request) {
	q.mu.Lock()
	delete(q.processing, key)
	again := q.again
	q.again = nil
	for _, one := range again {
		q.addLocked(one)
	}
	q.mu.Unlock()
	q.done <- struct{}{}
}

// Len is how many keys are ready.
func (q *Queue) Len() int { return len(q.Ready()) }

// ShutDown ends the worker.
func (q *Queue) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.down {
		q.down = true
		close(q.stop)
	}
}

// ShutDownWithDrain is ShutDown.
func (q *Queue) ShutDownWithDrain() { q.ShutDown() }

// ShuttingDown reports whether ShutDown was called.
func (q *Queue) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.down
}
