package handmade

import (
	"context"
	"slices"
	"sync"
)

// Gate holds the parts of an informer where they are. Its zero value is open.
//
// While it is closed (Pause), the goroutine that wants to bring an item into a stage waits: that of the watch,
// the reflector, the pop loop, the workers. As the one that reads the watch waits too, nothing piles up: the
// API server is simply not read, and ends the watch if that takes too long. Two things are not held: time, so
// that a back-off that is over brings its key back to the line of waiting keys; and a list that is under way,
// which is one answer to one request.
type Gate struct {
	mu      sync.Mutex
	paused  bool
	opened  bool // for ever
	held    []*held
	traffic traffic
	changed chan struct{} // closed at the next change; nil while nobody wants to know
}

// Held is an item at the gate.
type Held struct {
	// To is the stage that it wants to enter.
	To Stage
	Event
}

type held struct {
	Held
	admitted func(*traffic)
	goOn     chan struct{}
}

func (h *held) admit(t *traffic) {
	if h.admitted != nil {
		h.admitted(t)
	}
	close(h.goOn)
}

// traffic counts what is on its way from one part to the next, so that a step can wait until the item
// that it moves has arrived.
type traffic struct {
	listing bool // a list was let in, and the reflector has not brought it to the queue yet
	watched int  // watch events given to the reflector, and not yet brought to the queue by it
	deltas  int  // deltas in the queue and in the pop loop's hand
	waiting int  // keys in the line of the work queue
	inHand  int  // keys that workers have in hand
	workers int
}

// downstream is the order in which Step takes what is held: what is furthest on goes first.
var downstream = []Stage{
	StageDone, StageBackoff, StageWorking, StageWaiting, StageHandler, StageStore, StageQueue, StageWatch, StageList,
}

// Pause closes the gate. What is between two stages still arrives at the next.
func (g *Gate) Pause() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.paused = !g.opened
	g.tell()
}

// Resume opens the gate.
func (g *Gate) Resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.resume()
}

// Paused tells whether the gate is closed.
func (g *Gate) Paused() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.paused
}

// Held returns what waits at the gate, what Step takes next first.
func (g *Gate) Held() []Held {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make([]Held, 0, len(g.held))
	for _, one := range g.held {
		all = append(all, one.Held)
	}
	return all
}

// Step lets one item go one stage on, and pauses if nothing was paused. The item that is furthest on is taken,
// so that repeated steps bring one item right through before the next one follows; for that, Step waits until
// everything that is on its way has arrived, but no longer than ctx. It returns false if nothing is held.
//
// A whole list is one item until it is in the store, because client-go moves it in one piece.
func (g *Gate) Step(ctx context.Context) (Held, bool) {
	g.Pause()
	g.settle(ctx)
	stepped, ok := g.admit()
	if ok {
		g.settle(ctx)
	}
	return stepped, ok
}

// Changed returns a channel that is closed when something arrives at the gate, leaves it, or moves behind it.
func (g *Gate) Changed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.change()
}

// change is Changed, with the lock held.
func (g *Gate) change() <-chan struct{} {
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	return g.changed
}

func (g *Gate) admit() (Held, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.held) == 0 {
		return Held{}, false
	}
	next := g.held[0]
	g.held = g.held[1:]
	next.admit(&g.traffic)
	g.tell()
	return next.Held, true
}

// settle waits until no part is at work any more: each is at the gate or has nothing to do.
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
		switch one.To {
		case StageStore, StageHandler, StageWaiting:
			popLoop++
		case StageWorking, StageBackoff, StageDone:
			workers++
		}
	}
	t := g.traffic
	return g.opened || !t.listing && t.watched == 0 &&
		(t.deltas == 0 || popLoop > 0) &&
		t.inHand == workers &&
		(t.waiting == 0 || t.inHand >= t.workers)
}

// pass waits until the event may happen. The two functions, if they are given, say what changes in the traffic
// when the item has come to the gate, and when it is let through: both in one step with that, so that a Step
// never looks in between.
func (g *Gate) pass(event Event, arrived, admitted func(*traffic)) {
	if g == nil {
		return
	}
	one := &held{Held: Held{To: event.Stage, Event: event}, admitted: admitted, goOn: make(chan struct{})}
	g.mu.Lock()
	if arrived != nil {
		arrived(&g.traffic)
	}
	if g.paused {
		g.held = append(g.held, one)
		slices.SortStableFunc(g.held, func(a, b *held) int {
			return slices.Index(downstream, a.To) - slices.Index(downstream, b.To)
		})
	} else {
		one.admit(&g.traffic)
	}
	g.tell()
	g.mu.Unlock()
	<-one.goOn
}

func (g *Gate) note(change func(*traffic)) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	change(&g.traffic)
	g.tell()
}

func (g *Gate) open() {
	if g == nil {
		return
	}
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
	g.tell()
}

// tell wakes who waits for a change.
func (g *Gate) tell() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}
