package handmade

import (
	"context"
	"sync"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// WorkQueue is the queue between handlers and workers. There are only keys in it: whoever works on one looks
// in the store for how the object is now. So any number of changes of an object that wait are one piece of work.
type WorkQueue = workqueue.TypedRateLimitingInterface[cache.ObjectName]

// RateLimiter says how long a key that failed is kept back.
type RateLimiter = workqueue.TypedRateLimiter[cache.ObjectName]

// NewWorkQueue makes a work queue. Without a name it would have no metrics. A nil probe observes nothing.
func NewWorkQueue(name string, limiter RateLimiter, clock clock.WithTicker, probe *Probe) WorkQueue {
	if probe != nil {
		return newObservedWorkQueue(name, limiter, clock, probe)
	}
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
		workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: name, Clock: clock})
}

// Enqueue is the handler that every controller has: whatever happened to an object, its key is to be worked on.
// It is the same for all kinds of change, as the worker does not ask what happened but how things are.
func Enqueue(queue WorkQueue) Handler {
	return cache.TypedResourceEventHandlerFuncs[object]{
		AddFunc:    func(added object) { queue.Add(cache.MetaObjectToName(added)) },
		UpdateFunc: func(_, updated object) { queue.Add(cache.MetaObjectToName(updated)) },
		DeleteFunc: func(deleted cache.DeletedObject[object]) { queue.Add(deleted.GetObjectName()) },
	}
}

// Workers take keys off a queue and work on them.
type Workers struct {
	Queue WorkQueue
	// Count is how many keys may be worked on at once. One key is never worked on twice at once: that is the
	// queue's doing.
	Count int
	// Work brings the world in line with what the store says of a key. After an error the key comes back, later
	// and later.
	Work func(ctx context.Context, key cache.ObjectName) error
	// Probe is the one of the queue.
	Probe *Probe
}

// Run works until ctx ends, and until the pieces of work that were begun are done. Keys that still wait are left.
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

// next works on one key. It returns false at the end of the queue.
func (w *Workers) next(ctx context.Context) bool {
	key, shutdown := w.Queue.Get()
	if shutdown {
		return false
	}
	// Done is for every key that Get returned: until then nobody else gets this one.
	defer w.Queue.Done(key)
	w.Probe.begin(key)
	err := w.Work(ctx, key)
	w.Probe.end(key, err)
	if err != nil {
		// Kept back by the rate limiter, longer after each failure.
		w.Queue.AddRateLimited(key)
		if w.Probe == nil {
			utilruntime.HandleErrorWithContext(ctx, err, "Working on a key; it will be tried again", "key", key)
		}
		return true
	}
	// Forget is for the rate limiter: the next failure of this key is a first one again.
	w.Queue.Forget(key)
	return true
}
