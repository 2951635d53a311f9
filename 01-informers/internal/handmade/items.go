package handmade

import (
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// items knows for which item each key is in the work queue, as the queue has only keys. Each map has at most
// one entry for a key, and only while the key is there.
type items struct {
	probe *Probe

	// calls makes Add and Done one at a time; doing is the one under way, for which the queue calls pushed or
	// touched.
	calls sync.Mutex
	doing doing

	mu     sync.Mutex
	queued map[cache.ObjectName]string // waits, or a worker has it in hand
	behind map[cache.ObjectName]string // dirty: waits for the worker to be done
	back   map[cache.ObjectName]string // kept back
	failed map[cache.ObjectName]error  // the work failed, and it is about to be kept back
}

type doing struct {
	what, item string
	told       bool
}

func newItems(probe *Probe) *items {
	return &items{
		probe:  probe,
		queued: map[cache.ObjectName]string{},
		behind: map[cache.ObjectName]string{},
		back:   map[cache.ObjectName]string{},
		failed: map[cache.ObjectName]error{},
	}
}

// keyEvent is an event about a key, for which all that is known of the object is the item.
func keyEvent(stage Stage, what string, key cache.ObjectName, item string) Event {
	_, version, _ := strings.Cut(item, "@")
	return Event{Stage: stage, Type: what, Key: key, Item: item, ResourceVersion: version}
}

// goesInto is for two items that become one. After a relist they may be the same one.
func (e *Event) goesInto(item string) {
	if item != e.Item {
		e.Into = item
	}
}

// pushed is called by the queue: the key waits now.
func (i *items) pushed(key cache.ObjectName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.doing.what == Readded {
		i.doing.item = i.behind[key]
		delete(i.behind, key)
	}
	i.doing.told = true
	i.queued[key] = i.doing.item
	i.probe.note(func(t *traffic) { t.waiting++ })
	event := keyEvent(StageWaiting, i.doing.what, key, i.doing.item)
	event.KeptBack = i.doing.what == Returned
	i.probe.saw(event)
}

// touched is called by the queue: the key waits already.
func (i *items) touched(key cache.ObjectName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.doing.told = true
	event := keyEvent(StageWaiting, Merged, key, i.doing.item)
	event.KeptBack = i.doing.what == Returned
	event.goesInto(i.queued[key])
	i.probe.saw(event)
}

// dirty is for a key that was added while a worker has it in hand.
func (i *items) dirty(key cache.ObjectName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	event := keyEvent(StageWaiting, Dirty, key, i.doing.item)
	event.KeptBack = i.doing.what == Returned
	if first, already := i.behind[key]; already {
		event.Type = Merged
		event.goesInto(first)
	} else {
		i.behind[key] = event.Item
	}
	i.probe.saw(event)
}

// left is for a key that a worker gives back.
func (i *items) left(key cache.ObjectName) {
	i.doing = doing{what: Readded}
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.queued, key)
}

// kept is for a key that is kept back.
func (i *items) kept(key cache.ObjectName, delay time.Duration, attempt int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	event := keyEvent(StageBackoff, Failed, key, i.queued[key])
	event.Delay, event.Attempt, event.Err = delay, attempt, i.failed[key]
	delete(i.failed, key)
	if first, already := i.back[key]; already {
		event.goesInto(first)
	} else {
		i.back[key] = event.Item
	}
	i.probe.saw(event)
}

// released is for a key whose back-off is over. It returns its item.
func (i *items) released(key cache.ObjectName) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	item := i.back[key]
	delete(i.back, key)
	return item
}

func (i *items) of(key cache.ObjectName) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.queued[key]
}

// begin waits until the work on a key may begin, and reports that it does.
func (p *Probe) begin(key cache.ObjectName) {
	if items := p.workItems(); items != nil {
		p.enter(keyEvent(StageWorking, Started, key, items.of(key)))
	}
}

// end waits until the work on a key may be over, and reports it if it is for good. What is kept back is
// reported by the queue, which knows for how long.
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
		p.pass(keyEvent(StageBackoff, Failed, key, items.of(key)))
	}
}

func (p *Probe) workItems() *items {
	if p == nil {
		return nil
	}
	return p.items.Load()
}
