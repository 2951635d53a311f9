package handmade

import (
	"sync/atomic"

	"k8s.io/client-go/tools/cache"
)

// Probe reports each step of one informer and of its work queue: it wraps each of their parts. A nil *Probe wraps nothing.
type Probe struct {
	// Observe is called for every event, by the goroutine in which it happened, which may hold a lock: it must return at
	// once and must not call the informer. The events of one item are in the order of the stages.
	Observe func(Event)
	// Gate can pause items before they enter a stage. Nil: no pauses.
	Gate *Gate

	// populated: the first list was queued.
	populated atomic.Bool
	// handling is the event that a handler is called for. The pop loop calls one handler after the other.
	handling atomic.Pointer[Event]
	// items are those of the one work queue of the informer.
	items atomic.Pointer[items]
}

func (p *Probe) indexer(inner cache.Indexer) cache.Indexer {
	if p == nil {
		return inner
	}
	return &observedIndexer{Indexer: inner, probe: p}
}

func (p *Probe) queue(inner *cache.RealFIFO) queue {
	if p == nil {
		return inner
	}
	return &observedQueue{RealFIFO: inner, probe: p}
}

func (p *Probe) listerWatcher(inner cache.ListerWatcher) cache.ListerWatcher {
	if p == nil {
		return inner
	}
	return observeListerWatcher(inner, p)
}

func (p *Probe) handler(inner Handler) Handler {
	if p == nil {
		return inner
	}
	return &observedHandler{inner: inner, probe: p}
}

// saw reports an event.
func (p *Probe) saw(event Event) {
	if p != nil && p.Observe != nil {
		p.Observe(event)
	}
}

// wait waits for the gate before an item enters a stage.
func (p *Probe) wait(event Event) { p.waitAnd(event, nil, nil) }

// enter waits for the gate, and reports that an item enters a stage.
func (p *Probe) enter(event Event) {
	p.wait(event)
	p.saw(event)
}

// waitAnd is wait with changes of the traffic: when the item arrives at the gate, and when it leaves.
func (p *Probe) waitAnd(event Event, arrived, admitted func(*traffic)) {
	if p != nil {
		p.Gate.wait(event, arrived, admitted)
	}
}

// handle is enter for a call of a handler. Until the call returns, keys that are added to a work queue are for this item.
func (p *Probe) handle(event Event, call func()) {
	p.enter(event)
	p.handling.Store(&event)
	call()
	p.handling.Store(nil)
}

// cause returns the item for which a key is added to a work queue, if a handler adds it.
func (p *Probe) cause(key cache.ObjectName) string {
	if event := p.handling.Load(); event != nil && event.Key == key {
		return event.Item
	}
	return ""
}

// note changes the traffic of the gate, if there is one.
func (p *Probe) note(change func(*traffic)) {
	if p != nil {
		p.Gate.note(change)
	}
}

// processed records that the pop loop has processed a delta.
func (p *Probe) processed() { p.note(func(t *traffic) { t.deltas-- }) }

// open opens the gate for good, when the informer ends.
func (p *Probe) open() {
	if p != nil {
		p.Gate.open()
	}
}
