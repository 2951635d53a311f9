package handmade

import (
	"sync/atomic"

	"k8s.io/client-go/tools/cache"
)

// Probe reports each step of one informer and of its work queue: each of their parts gets a wrapper.
type Probe struct {
	// Observe is called for every event, by the goroutine in which it happened, which may hold a lock: it must return at
	// once and must not call the informer. The events of one item are in the order of the stages.
	Observe func(Event)
	// Gate can pause items before they enter a stage.
	Gate Gate

	// populated: the first list was queued.
	populated atomic.Bool
	// handling is the event that a handler is called for. The pop loop calls one handler after the other.
	handling atomic.Pointer[Event]
	// items are those of the one work queue of the informer.
	items *items
}

// wait waits for the gate before an item enters a stage.
func (p *Probe) wait(event Event) { p.Gate.wait(event, nil, nil) }

// enter waits for the gate, and reports that an item enters a stage.
func (p *Probe) enter(event Event) {
	p.wait(event)
	p.Observe(event)
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

// note changes the traffic of the gate. It may be called on a nil probe.
func (p *Probe) note(change func(*traffic)) {
	if p != nil {
		p.Gate.note(change)
	}
}
