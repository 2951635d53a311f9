package handmade

import (
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// items records for which item each key is in the work queue, because the queue has keys only. Each map has at most one
// entry for a key, while the key is in that state.
type items struct {
	probe *Probe

	// calls serializes Add and Done; current is the call during which the queue calls pushed or touched.
	calls   sync.Mutex
	current call

	mu      sync.Mutex
	queued  map[cache.ObjectName]string // it waits, or a worker processes it
	marked  map[cache.ObjectName]string // dirty: it waits until the worker is done
	backoff map[cache.ObjectName]string // in backoff
	failed  map[cache.ObjectName]error  // the work failed, and its backoff begins next
}

// call is a call of Add or Done: the type and the item of its event, and whether the event was reported.
type call struct {
	what, item string
	reported   bool
}

func newItems(probe *Probe) *items {
	return &items{
		probe: probe, queued: map[cache.ObjectName]string{}, marked: map[cache.ObjectName]string{},
		backoff: map[cache.ObjectName]string{}, failed: map[cache.ObjectName]error{},
	}
}

// keyEvent returns an event about a key. Only the item of the object is known.
func keyEvent(stage Stage, what string, key cache.ObjectName, item string) Event {
	_, version, _ := strings.Cut(item, "@")
	return Event{Stage: stage, Type: what, Key: key, Item: item, ResourceVersion: version}
}

// mergeInto records that two items become one. After a relist they may be the same one.
func (e *Event) mergeInto(item string) {
	if item != e.Item {
		e.Into = item
	}
}

// waiting returns an event about a key in the queue, and the item of the current call.
func (i *items) waiting(what string, key cache.ObjectName) Event {
	event := keyEvent(StageWaiting, what, key, i.current.item)
	event.BackedOff = i.current.what == Returned
	return event
}

// pushed reports that the key waits now.
func (i *items) pushed(key cache.ObjectName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.current.what == Readded {
		i.current.item = i.marked[key]
		delete(i.marked, key)
	}
	i.current.reported = true
	i.queued[key] = i.current.item
	i.probe.Gate.note(func(t *traffic) { t.waiting++ })
	i.probe.Observe(i.waiting(i.current.what, key))
}

// touched reports that the key waited already.
func (i *items) touched(key cache.ObjectName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.current.reported = true
	event := i.waiting(Merged, key)
	event.mergeInto(i.queued[key])
	i.probe.Observe(event)
}

// dirty reports that a key was added while a worker processes it.
func (i *items) dirty(key cache.ObjectName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	event := i.waiting(Dirty, key)
	if first, already := i.marked[key]; already {
		event.Type = Merged
		event.mergeInto(first)
	} else {
		i.marked[key] = event.Item
	}
	i.probe.Observe(event)
}

// left records that a worker calls Done for a key.
func (i *items) left(key cache.ObjectName) {
	i.current = call{what: Readded}
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.queued, key)
}

// delayed reports that the backoff of a key begins.
func (i *items) delayed(key cache.ObjectName, delay time.Duration, attempt int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	event := keyEvent(StageBackoff, Failed, key, i.queued[key])
	event.Delay, event.Attempt, event.Err = delay, attempt, i.failed[key]
	delete(i.failed, key)
	if first, already := i.backoff[key]; already {
		event.mergeInto(first)
	} else {
		i.backoff[key] = event.Item
	}
	i.probe.Observe(event)
}

// released ends the backoff of a key, and returns its item.
func (i *items) released(key cache.ObjectName) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	item := i.backoff[key]
	delete(i.backoff, key)
	return item
}

func (i *items) of(key cache.ObjectName) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.queued[key]
}

// begin waits for the gate before a key is processed, and reports that. It may be called on a nil probe.
func (p *Probe) begin(key cache.ObjectName) {
	if p != nil {
		p.enter(keyEvent(StageWorking, Started, key, p.items.of(key)))
	}
}

// end waits for the gate after a key was processed, and reports success. The queue reports a failure, because it knows the
// backoff. It may be called on a nil probe.
func (p *Probe) end(key cache.ObjectName, err error) {
	switch {
	case p == nil:
	case err == nil:
		p.enter(keyEvent(StageDone, Done, key, p.items.of(key)))
	default:
		p.items.mu.Lock()
		p.items.failed[key] = err
		p.items.mu.Unlock()
		p.wait(keyEvent(StageBackoff, Failed, key, p.items.of(key)))
	}
}
