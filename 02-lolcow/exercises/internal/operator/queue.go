package operator

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/shared/exercise/check"
)

// Queue is a queue of a controller that notes what happens to it.
type Queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	b *check.B

	mu        sync.Mutex
	out, done int
	retries   int
	delays    []time.Duration
}

func newQueue(b *check.B, limiter workqueue.TypedRateLimiter[reconcile.Request]) *Queue {
	return &Queue{b: b, TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueue(limiter)}
}

// Get hands a key out.
func (q *Queue) Get() (reconcile.Request, bool) {
	request, shutdown := q.TypedRateLimitingInterface.Get()
	if !shutdown {
		q.b.Event("Reconcile is called")
		q.mu.Lock()
		defer q.mu.Unlock()
		q.out++
	}
	return request, shutdown
}

// Done says that a key is not at work any more.
func (q *Queue) Done(request reconcile.Request) {
	q.TypedRateLimitingInterface.Done(request)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.done++
}

// AddAfter is what RequeueAfter leads to.
func (q *Queue) AddAfter(request reconcile.Request, delay time.Duration) {
	q.b.Event("  another reconciliation is to come in %s", delay)
	q.TypedRateLimitingInterface.AddAfter(request, delay)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.delays = append(q.delays, delay)
}

// AddRateLimited is what an error leads to.
func (q *Queue) AddRateLimited(request reconcile.Request) {
	q.b.Event("  it is to be tried again")
	q.TypedRateLimitingInterface.AddRateLimited(request)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.retries++
}

// Retries is how often an error had a key added.
func (q *Queue) Retries() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.retries
}

// HandedOut is how often a key was handed out.
func (q *Queue) HandedOut() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.out
}

// Delays are those of AddAfter.
func (q *Queue) Delays() []time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.delays
}

// busy says what the queue still does, or returns an empty string.
func (q *Queue) busy(count int) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.out < count || q.out > q.done || q.Len() > 0 {
		return fmt.Sprintf("the queue does not become empty: %d keys were handed out, %d are done, %d wait", q.out, q.done, q.Len())
	}
	return ""
}
