package handmade

import (
	"sync/atomic"

	"k8s.io/client-go/tools/cache"
)

// Probe sees every step of one informer and of its work queue. The parts themselves report: the Probe wraps each of
// them. A nil *Probe wraps nothing.
type Probe struct {
	// Observe is called for every event, by the goroutine in which it happened, partly while that holds a lock:
	// it must return at once and call nothing of the informer. Events of one item arrive in the order of the
	// stages.
	Observe func(Event)
	// Gate may hold items before they enter a stage. Nil: nothing is held.
	Gate *Gate

	// populated: the first list is in the queue.
	populated atomic.Bool
	// handling is what a handler is being told of. The pop loop calls one handler after the other.
	handling atomic.Pointer[Event]
	// items are those of the one work queue behind the informer.
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

// pass waits until an item may enter a stage.
func (p *Probe) pass(event Event) { p.passAnd(event, nil, nil) }

// enter waits until an item may enter a stage, and reports that it does.
func (p *Probe) enter(event Event) {
	p.pass(event)
	p.saw(event)
}

// passAnd is pass, and tells the gate what changes on the item's arrival there and on its admission.
func (p *Probe) passAnd(event Event, arrived, admitted func(*traffic)) {
	if p != nil {
		p.Gate.pass(event, arrived, admitted)
	}
}

// handle is enter for a handler's call. Until it is over, keys that are added to a work queue are for this item.
func (p *Probe) handle(event Event, call func()) {
	p.enter(event)
	p.handling.Store(&event)
	call()
	p.handling.Store(nil)
}

// cause returns the item for which a key is added to a work queue, if a handler does that.
func (p *Probe) cause(key cache.ObjectName) string {
	if event := p.handling.Load(); event != nil && event.Key == key {
		return event.Item
	}
	return ""
}

// note tells the gate what is on its way, if there is a gate.
func (p *Probe) note(change func(*traffic)) {
	if p != nil {
		p.Gate.note(change)
	}
}

// processed says that the pop loop is done with a delta.
func (p *Probe) processed() { p.note(func(t *traffic) { t.deltas-- }) }

// open lets everything go on for ever, at the end of the informer.
func (p *Probe) open() {
	if p != nil {
		p.Gate.open()
	}
}
