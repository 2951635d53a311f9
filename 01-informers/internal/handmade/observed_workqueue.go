package handmade

import (
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// newObservedWorkQueue returns the same queue as NewWorkQueue, with a wrapper around each layer: the order of the keys that
// wait (workqueue.Queue), the queue with its dirty and processing sets (workqueue.Typed), and the delaying queue, which has
// the keys in backoff. The queue calls Push, Touch and Pop of the first: so the wrapper reports what the queue did.
func newObservedWorkQueue(name string, limiter RateLimiter, probe *Probe) WorkQueue {
	probe.items = newItems(probe)
	order := &observedOrder{Queue: workqueue.DefaultQueue[cache.ObjectName](), items: probe.items}
	base := &observedBase{items: probe.items, TypedInterface: workqueue.NewTypedWithConfig(
		workqueue.TypedQueueConfig[cache.ObjectName]{Name: name, Queue: order})}
	delaying := workqueue.NewTypedDelayingQueueWithConfig(
		workqueue.TypedDelayingQueueConfig[cache.ObjectName]{Name: name, Queue: &afterBackoff{base}})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
		workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{
			Name:          name,
			DelayingQueue: &observedDelay{TypedDelayingInterface: delaying, base: base, limiter: limiter},
		})
}

// observedOrder is the order of the keys that wait. The queue holds its lock when it calls it.
type observedOrder struct {
	workqueue.Queue[cache.ObjectName]
	items *items
}

// Push is called for a key that was not in the queue, or that was dirty when its worker called Done.
func (o *observedOrder) Push(key cache.ObjectName) {
	o.Queue.Push(key)
	o.items.pushed(key)
}

// Touch is called for a key that waits already.
func (o *observedOrder) Touch(key cache.ObjectName) {
	o.Queue.Touch(key)
	o.items.touched(key)
}

// Pop is called when a worker gets a key.
func (o *observedOrder) Pop() cache.ObjectName {
	key := o.Queue.Pop()
	o.items.probe.Gate.note(func(t *traffic) { t.waiting--; t.working++ })
	return key
}

// observedBase is the queue itself. Add and Done, one at a time, record for which item the queue calls Push or Touch.
type observedBase struct {
	workqueue.TypedInterface[cache.ObjectName]
	items *items
}

// Add is called by a handler.
func (b *observedBase) Add(key cache.ObjectName) {
	item := b.items.probe.cause(key)
	b.items.probe.wait(keyEvent(StageWaiting, Waits, key, item))
	b.add(key, Waits, item)
}

func (b *observedBase) add(key cache.ObjectName, what, item string) {
	b.items.calls.Lock()
	defer b.items.calls.Unlock()
	b.items.current = call{what: what, item: item}
	b.TypedInterface.Add(key)
	if !b.items.current.reported && !b.ShuttingDown() {
		// Neither Push nor Touch was called: a worker processes the key, and the queue only marks it dirty.
		b.items.dirty(key)
	}
}

// Done is called by a worker, for every key that Get returned.
func (b *observedBase) Done(key cache.ObjectName) {
	b.items.calls.Lock()
	defer b.items.calls.Unlock()
	b.items.left(key)
	b.TypedInterface.Done(key)
	b.items.probe.Gate.note(func(t *traffic) { t.working-- })
}

// afterBackoff is the queue that the delaying queue adds a key to when its backoff has expired. It does not wait for the
// gate: the key waits there when a worker gets it.
type afterBackoff struct{ *observedBase }

func (a *afterBackoff) Add(key cache.ObjectName) { a.add(key, Returned, a.items.released(key)) }

// observedDelay reports the keys that are in backoff.
type observedDelay struct {
	workqueue.TypedDelayingInterface[cache.ObjectName]
	base    *observedBase
	limiter RateLimiter
}

// Add does not use the Add of the delaying queue, which is that of afterBackoff.
func (d *observedDelay) Add(key cache.ObjectName) { d.base.Add(key) }

// AddAfter is called by the rate limiting queue, with the delay of the limiter.
func (d *observedDelay) AddAfter(key cache.ObjectName, delay time.Duration) {
	d.base.items.delayed(key, delay, d.limiter.NumRequeues(key))
	d.TypedDelayingInterface.AddAfter(key, delay)
}
