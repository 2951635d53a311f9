package handmade

import (
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// newObservedWorkQueue makes the same queue as NewWorkQueue, with a wrapper around each of its layers: the line
// of keys that wait (workqueue.Queue), the queue with its dirty and processing sets (workqueue.Typed), and the
// delaying queue that keeps keys back. The queue itself calls the line's Push, Touch and Pop: what is reported
// is what it did.
func newObservedWorkQueue(name string, limiter RateLimiter, clock clock.WithTicker, probe *Probe) WorkQueue {
	items := newItems(probe)
	probe.items.Store(items)
	line := &observedLine{Queue: workqueue.DefaultQueue[cache.ObjectName](), items: items}
	base := &observedBase{items: items, TypedInterface: workqueue.NewTypedWithConfig(
		workqueue.TypedQueueConfig[cache.ObjectName]{Name: name, Clock: clock, Queue: line})}
	delaying := workqueue.NewTypedDelayingQueueWithConfig(
		workqueue.TypedDelayingQueueConfig[cache.ObjectName]{Name: name, Clock: clock, Queue: &returning{base}})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
		workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{
			Name: name, Clock: clock,
			DelayingQueue: &observedDelay{TypedDelayingInterface: delaying, base: base, limiter: limiter},
		})
}

// observedLine is the order of the keys that wait. The queue calls it with its lock held.
type observedLine struct {
	workqueue.Queue[cache.ObjectName]
	items *items
}

// Push is called for a key that was not in the queue, or that a worker has just given back.
func (l *observedLine) Push(key cache.ObjectName) {
	l.Queue.Push(key)
	l.items.pushed(key)
}

// Touch is called for a key that waits already.
func (l *observedLine) Touch(key cache.ObjectName) {
	l.Queue.Touch(key)
	l.items.touched(key)
}

// Pop is called when a worker gets a key.
func (l *observedLine) Pop() cache.ObjectName {
	key := l.Queue.Pop()
	l.items.probe.note(func(t *traffic) { t.waiting--; t.inHand++ })
	return key
}

// observedBase is the queue itself. Add and Done, one at a time, say for which item the line is called.
type observedBase struct {
	workqueue.TypedInterface[cache.ObjectName]
	items *items
}

// Add is called by a handler.
func (b *observedBase) Add(key cache.ObjectName) {
	item := b.items.probe.cause(key)
	b.items.probe.pass(keyEvent(StageWaiting, Waits, key, item))
	b.add(key, Waits, item)
}

func (b *observedBase) add(key cache.ObjectName, what, item string) {
	b.items.calls.Lock()
	defer b.items.calls.Unlock()
	b.items.doing = doing{what: what, item: item}
	b.TypedInterface.Add(key)
	if !b.items.doing.told && !b.ShuttingDown() {
		// Neither pushed nor touched: a worker has it in hand, and it is only marked as dirty.
		b.items.dirty(key)
	}
}

// Done is called by a worker, for every key that it got.
func (b *observedBase) Done(key cache.ObjectName) {
	b.items.calls.Lock()
	defer b.items.calls.Unlock()
	b.items.left(key)
	b.TypedInterface.Done(key)
	b.items.probe.note(func(t *traffic) { t.inHand-- })
}

// returning is what the delaying queue adds to: a key whose back-off is over. That is a matter of time, which
// goes on while the gate is closed; the key is held when a worker wants it.
type returning struct{ *observedBase }

func (r *returning) Add(key cache.ObjectName) { r.add(key, Returned, r.items.released(key)) }

// observedDelay reports what is kept back.
type observedDelay struct {
	workqueue.TypedDelayingInterface[cache.ObjectName]
	base    *observedBase
	limiter RateLimiter
}

// Add passes the delaying queue by, whose Add leads to returning.
func (d *observedDelay) Add(key cache.ObjectName) { d.base.Add(key) }

// AddAfter is called by the rate limiting queue, after it asked the limiter.
func (d *observedDelay) AddAfter(key cache.ObjectName, delay time.Duration) {
	d.base.items.kept(key, delay, d.limiter.NumRequeues(key))
	d.TypedDelayingInterface.AddAfter(key, delay)
}
