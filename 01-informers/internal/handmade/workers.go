package handmade

import (
	"context"
	"sync"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// WorkQueue is the queue between handlers and workers. It has keys only: a worker reads the current object from the store,
// so that it processes a key once for all changes until then.
type WorkQueue = workqueue.TypedRateLimitingInterface[cache.ObjectName]

// RateLimiter decides the backoff of a key that failed.
type RateLimiter = workqueue.TypedRateLimiter[cache.ObjectName]

// NewWorkQueue returns a work queue. The name is that of its metrics. A nil probe observes nothing.
func NewWorkQueue(name string, limiter RateLimiter, probe *Probe) WorkQueue {
	if probe != nil {
		return newObservedWorkQueue(name, limiter, probe)
	}
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
		workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: name})
}

// Enqueue returns the handler that every controller has: it enqueues the key of the object. It does the same for all kinds
// of change, because the worker reads the current state and not the change.
func Enqueue(queue WorkQueue) Handler {
	return cache.TypedResourceEventHandlerFuncs[object]{
		AddFunc:    func(added object) { queue.Add(cache.MetaObjectToName(added)) },
		UpdateFunc: func(_, updated object) { queue.Add(cache.MetaObjectToName(updated)) },
		DeleteFunc: func(deleted cache.DeletedObject[object]) { queue.Add(deleted.GetObjectName()) },
	}
}

// Workers process the keys of a queue.
type Workers struct {
	Queue WorkQueue
	// Count is how many keys are processed at once. The queue ensures that no two workers process the same key at once.
	Count int
	// Work reconciles the object of a key. After an error the key is queued again, with exponential backoff.
	Work func(ctx context.Context, key cache.ObjectName) error
	// Probe is that of the queue.
	Probe *Probe
}

// Run processes keys until ctx ends, and returns when the work that has begun is done. Keys that wait are not processed.
func (w *Workers) Run(ctx context.Context) {
	w.Probe.note(func(t *traffic) { t.workers = w.Count })
	defer context.AfterFunc(ctx, w.Queue.ShutDown)()
	var working sync.WaitGroup
	for range w.Count {
		working.Go(func() {
			for ctx.Err() == nil && w.next(ctx) {
			}
		})
	}
	working.Wait()
}

// next processes one key. It returns false if the queue was shut down.
func (w *Workers) next(ctx context.Context) bool {
	key, shutdown := w.Queue.Get()
	if shutdown {
		return false
	}
	// Done is called for every key that Get returned: until then no other worker gets this key.
	defer w.Queue.Done(key)
	w.Probe.begin(key)
	err := w.Work(ctx, key)
	w.Probe.end(key, err)
	if err != nil {
		// The rate limiter decides the backoff: longer after each failure.
		w.Queue.AddRateLimited(key)
		if w.Probe == nil {
			utilruntime.HandleErrorWithContext(ctx, err, "Processing a key; it will be retried", "key", key)
		}
		return true
	}
	// Forget resets the rate limiter: the next failure of this key counts as the first.
	w.Queue.Forget(key)
	return true
}
