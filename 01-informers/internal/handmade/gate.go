package handmade

import (
	"context"
	"slices"
	"sync"
)

// Gate pauses an informer and its workers. Its zero value is open.
//
// While it is closed (Pause), each goroutine waits before it moves an item into a stage: those of the watch, the
// reflector, the pop loop and the workers. Nothing accumulates, because the goroutine that reads the watch waits too: the
// API server's events are not read, and it ends the watch if that takes too long. Two things are not paused: time, so that
// a key is queued again after its backoff; and a list that has started, which is one response.
type Gate struct {
	mu      sync.Mutex
	paused  bool
	opened  bool // for good
	held    []*held
	traffic traffic
	changed chan struct{} // closed at the next change; nil while no goroutine waits for it
}

// held is an item at the gate, which enters the stage of the event next.
type held struct {
	Event
	admitted func(*traffic)
	goOn     chan struct{}
}

func (h *held) admit(t *traffic) {
	if h.admitted != nil {
		h.admitted(t)
	}
	close(h.goOn)
}

// traffic counts what is between two parts, so that a step can wait until the item that it moves has arrived.
type traffic struct {
	listing bool // a list was requested, and the reflector has not queued it yet
	watched int  // watch events that the reflector has received and not queued yet
	deltas  int  // deltas that are queued, or that the pop loop processes
	waiting int  // keys that wait in the work queue
	working int  // keys that workers process
	workers int
}

// downstream is the order in which Step moves held items: the one closest to the end of its path first.
var downstream = []Stage{
	StageDone, StageBackoff, StageWorking, StageWaiting, StageHandler, StageStore, StageQueue, StageWatch, StageList,
}

// Pause closes the gate. An item between two stages still arrives at the next one.
func (g *Gate) Pause() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.paused = !g.opened
	g.notify()
}

// Resume opens the gate.
func (g *Gate) Resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.resume()
}

// Paused reports whether the gate is closed.
func (g *Gate) Paused() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.paused
}

// Held returns the events of the items that wait at the gate, in the order in which Step moves them.
func (g *Gate) Held() []Event {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make([]Event, len(g.held))
	for i, one := range g.held {
		all[i] = one.Event
	}
	return all
}

// Step pauses, and then moves one item to its next stage: the one closest to the end of its path, so that repeated steps
// move one item through all stages before the next one. For that, Step waits until all items between two stages have
// arrived, but no longer than ctx. It returns false if no item waits.
//
// A whole list is one item until it is in the store, because client-go moves it at once.
func (g *Gate) Step(ctx context.Context) (Event, bool) {
	g.Pause()
	g.settle(ctx)
	stepped, ok := g.admit()
	if ok {
		g.settle(ctx)
	}
	return stepped, ok
}

// Changed returns a channel that is closed when an item arrives at the gate, or moves.
func (g *Gate) Changed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.change()
}

// change is Changed for a caller that holds the lock.
func (g *Gate) change() <-chan struct{} {
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	return g.changed
}

func (g *Gate) admit() (Event, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.held) == 0 {
		return Event{}, false
	}
	next := g.held[0]
	g.held = g.held[1:]
	next.admit(&g.traffic)
	g.notify()
	return next.Event, true
}

// settle waits until each part waits at the gate or has nothing to do.
func (g *Gate) settle(ctx context.Context) {
	for {
		g.mu.Lock()
		if g.settled() {
			g.mu.Unlock()
			return
		}
		changed := g.change()
		g.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (g *Gate) settled() bool {
	var popLoop, workers int
	for _, one := range g.held {
		switch one.Stage {
		case StageStore, StageHandler, StageWaiting:
			popLoop++
		case StageWorking, StageBackoff, StageDone:
			workers++
		}
	}
	t := g.traffic
	return g.opened || !t.listing && t.watched == 0 &&
		(t.deltas == 0 || popLoop > 0) &&
		t.working == workers &&
		(t.waiting == 0 || t.working >= t.workers)
}

// wait waits until the gate is open for an event. The two functions, unless they are nil, change the traffic when the item
// arrives at the gate and when it leaves: both under the lock, so that a Step sees no state in between.
func (g *Gate) wait(event Event, arrived, admitted func(*traffic)) {
	one := &held{Event: event, admitted: admitted, goOn: make(chan struct{})}
	g.mu.Lock()
	if arrived != nil {
		arrived(&g.traffic)
	}
	if g.paused {
		g.held = append(g.held, one)
		slices.SortStableFunc(g.held, func(a, b *held) int {
			return slices.Index(downstream, a.Stage) - slices.Index(downstream, b.Stage)
		})
	} else {
		one.admit(&g.traffic)
	}
	g.notify()
	g.mu.Unlock()
	<-one.goOn
}

// note changes the traffic.
func (g *Gate) note(change func(*traffic)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(&g.traffic)
	g.notify()
}

// open opens the gate for good, when the informer ends.
func (g *Gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opened = true
	g.resume()
}

func (g *Gate) resume() {
	g.paused = false
	for _, one := range g.held {
		one.admit(&g.traffic)
	}
	g.held = nil
	g.notify()
}

// notify notifies all goroutines that wait for a change.
func (g *Gate) notify() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}
