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
		probe:   probe,
		queued:  map[cache.ObjectName]string{},
		marked:  map[cache.ObjectName]string{},
		backoff: map[cache.ObjectName]string{},
		failed:  map[cache.ObjectName]error{},
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
	i.probe.note(func(t *traffic) { t.waiting++ })
	event := keyEvent(StageWaiting, i.current.what, key, i.current.item)
	event.BackedOff = i.current.what == Returned
	i.probe.saw(event)
}

// touched reports that the key waited already.
func (i *items) touched(key cache.ObjectName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.current.reported = true
	event := keyEvent(StageWaiting, Merged, key, i.current.item)
	event.BackedOff = i.current.what == Returned
	event.mergeInto(i.queued[key])
	i.probe.saw(event)
}

// dirty reports that a key was added while a worker processes it.
func (i *items) dirty(key cache.ObjectName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	event := keyEvent(StageWaiting, Dirty, key, i.current.item)
	event.BackedOff = i.current.what == Returned
	if first, already := i.marked[key]; already {
		event.Type = Merged
		event.mergeInto(first)
	} else {
		i.marked[key] = event.Item
	}
	i.probe.saw(event)
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
	i.probe.saw(event)
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

// begin waits for the gate before a key is processed, and reports that.
func (p *Probe) begin(key cache.ObjectName) {
	if items := p.workItems(); items != nil {
		p.enter(keyEvent(StageWorking, Started, key, items.of(key)))
	}
}

// end waits for the gate after a key was processed, and reports success. The queue reports a failure, because it knows the
// backoff.
func (p *Probe) end(key cache.ObjectName, err error) {
	items := p.workItems()
	switch {
	case items == nil:
	case err == nil:
		p.enter(keyEvent(StageDone, Done, key, items.of(key)))
	default:
		items.mu.Lock()
		items.failed[key] = err
		items.mu.Unlock()
		p.wait(keyEvent(StageBackoff, Failed, key, items.of(key)))
	}
}

func (p *Probe) workItems() *items {
	if p == nil {
		return nil
	}
	return p.items.Load()
}
