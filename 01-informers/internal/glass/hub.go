package glass

import (
	"container/list"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/clock"

	"example.com/workbook/01-informers/internal/handmade"
)

// Limits bound the server's memory.
type Limits struct {
	// Ring is how many events are kept for slow clients.
	Ring int
	// Batch is the largest number of events in one message, and Flush the shortest time between two messages.
	Batch int
	Flush time.Duration
	// Items, Log and Objects are the maximum lengths of the lists in State.
	Items, Log, Objects int
	// Clients is how many pages may be connected to /events at once. The server rejects more (503).
	Clients int
}

// DefaultLimits keep the events of 15 seconds with 200 changes a second, in about 6 MB.
func DefaultLimits() Limits {
	return Limits{Ring: 16384, Batch: 2000, Flush: 50 * time.Millisecond, Items: 500, Log: 200, Objects: 5000, Clients: 16}
}

// hub receives the events, and keeps the last ones for slow clients and for pages that connect later. Its limits bound its
// memory, except for one entry for each object in the store and each key in the work queue.
type hub struct {
	clock  clock.PassiveClock
	start  time.Time
	run    string // distinguishes this run's cursors from those of another
	limits Limits
	gate   *handmade.Gate

	mu      sync.Mutex
	ring    []Event // event seq is at (seq-1) % len
	seq     uint64
	changed chan struct{} // closed at the next event; nil while no client waits

	synced  bool
	counts  Counts
	totals  map[handmade.Stage]uint64
	dropped uint64
	items   map[string]*list.Element // by Event.Item, in byAge
	byAge   *list.List               // of Event: the latest of each item, oldest first
	backoff map[string]bool          // keys
	objects map[string]Object        // by key
}

func newHub(clock clock.PassiveClock, limits Limits, gate *handmade.Gate) *hub {
	return &hub{
		clock: clock, start: clock.Now(), run: rand.String(8), limits: limits, gate: gate,
		ring:   make([]Event, limits.Ring),
		totals: map[handmade.Stage]uint64{}, items: map[string]*list.Element{}, byAge: list.New(),
		backoff: map[string]bool{}, objects: map[string]Object{},
	}
}

// observe is the callback for Probe.Observe. The caller may hold a lock of the informer or of the work queue, so observe must
// not block.
func (h *hub) observe(source handmade.Event) {
	event := translate(source)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count(event)
	h.publish(event)
}

// control publishes an event that is not about an item: what a user did, or that the first list is in the store.
func (h *hub) control(what, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.synced = h.synced || what == controlSynced
	h.publish(Event{Event: handmade.Event{Stage: StageControl, Type: what}, Text: text})
}

func (h *hub) publish(event Event) {
	h.seq++
	event.Seq, event.Time = h.seq, h.clock.Since(h.start).Milliseconds()
	h.ring[(h.seq-1)%uint64(len(h.ring))] = event
	if event.Key != "" {
		h.totals[event.Stage]++
	}
	if event.Item != "" {
		h.keep(event)
	}
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

// keep records the latest event of an item. Above limits.Items it forgets the item that has not moved for the longest time.
func (h *hub) keep(event Event) {
	if known, ok := h.items[event.Item]; ok {
		known.Value = event
		h.byAge.MoveToBack(known)
		return
	}
	h.items[event.Item] = h.byAge.PushBack(event)
	if h.byAge.Len() > h.limits.Items {
		if oldest, ok := h.byAge.Remove(h.byAge.Front()).(Event); ok {
			delete(h.items, oldest.Item)
		}
	}
}

// count updates how many deltas, objects or keys are in each stage.
func (h *hub) count(event Event) {
	switch event.Stage {
	case handmade.StageQueue:
		if !event.PartOfList {
			h.counts.Queue++
		}
	case handmade.StageStore:
		if !event.PartOfList {
			h.counts.Queue--
		}
		switch event.Type {
		case handmade.Add, handmade.Update:
			h.objects[event.Key] = Object{Key: event.Key, Item: event.Item, ResourceVersion: event.ResourceVersion}
		case handmade.Delete:
			delete(h.objects, event.Key)
		}
		h.counts.Store = len(h.objects)
	case handmade.StageWaiting:
		if event.BackedOff {
			delete(h.backoff, event.Key)
		}
		if event.Type != handmade.Merged && event.Type != handmade.Dirty {
			h.counts.Waiting++
		}
	case handmade.StageWorking:
		h.counts.Waiting--
		h.counts.Working++
	case handmade.StageBackoff:
		h.counts.Working--
		h.backoff[event.Key] = true
	case handmade.StageDone:
		h.counts.Working--
	}
	h.counts.Backoff = len(h.backoff)
}

// snapshotLocked returns the current Snapshot; the caller holds the lock.
func (h *hub) snapshotLocked() Snapshot {
	snapshot := Snapshot{
		Seq: h.seq, Paused: h.gate.Paused(), Synced: h.synced, Counts: h.counts,
		Totals: maps.Clone(h.totals), Held: []Held{}, Dropped: h.dropped,
	}
	for _, held := range h.gate.Held() {
		snapshot.Held = append(snapshot.Held, heldItem(held))
	}
	return snapshot
}

func heldItem(event handmade.Event) Held {
	return Held{To: event.Stage, Item: event.Item, Key: keyOf(event)}
}

// snapshot returns the current Snapshot.
func (h *hub) snapshot() Snapshot {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.snapshotLocked()
}

// state returns a State without the fields that the Server sets.
func (h *hub) state() State {
	h.mu.Lock()
	defer h.mu.Unlock()
	state := State{
		Cursor: h.formatCursor(h.seq), Time: h.clock.Since(h.start).Milliseconds(), Now: h.snapshotLocked(),
		Items: []Event{}, Log: []Event{},
	}
	for at := h.byAge.Front(); at != nil; at = at.Next() {
		if event, ok := at.Value.(Event); ok {
			state.Items = append(state.Items, event)
		}
	}
	first := h.seq - min(h.seq, uint64(min(h.limits.Log, len(h.ring))))
	for seq := first + 1; seq <= h.seq; seq++ {
		state.Log = append(state.Log, h.at(seq))
	}
	state.Objects = slices.SortedFunc(maps.Values(h.objects), func(a, b Object) int { return strings.Compare(a.Key, b.Key) })
	state.Objects = slices.Clip(state.Objects[:min(len(state.Objects), h.limits.Objects)])
	if state.Objects == nil {
		state.Objects = []Object{}
	}
	return state
}

// read returns the events after a seq, at most one batch. If the ring no longer has all of them, it returns the range of those
// that are lost instead.
func (h *hub) read(after uint64) (Batch, *Dropped) {
	h.mu.Lock()
	defer h.mu.Unlock()
	oldest := h.seq - min(h.seq, uint64(len(h.ring))) + 1
	if after+1 < oldest {
		return Batch{}, &Dropped{Count: oldest - 1 - after, From: after + 1, To: oldest - 1}
	}
	last := min(h.seq, after+uint64(h.limits.Batch))
	batch := Batch{Events: make([]Event, 0, last-after), Now: h.snapshotLocked()}
	for seq := after + 1; seq <= last; seq++ {
		batch.Events = append(batch.Events, h.at(seq))
	}
	return batch, nil
}

// countDropped counts events that a client missed.
func (h *hub) countDropped(lost *Dropped) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dropped += lost.Count
}

func (h *hub) at(seq uint64) Event { return h.ring[(seq-1)%uint64(len(h.ring))] }

// wait returns a channel that is closed when there is an event after a seq.
func (h *hub) wait(after uint64) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seq > after {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	return h.changed
}

// formatCursor returns the cursor after the event seq, for a client.
func (h *hub) formatCursor(seq uint64) string { return fmt.Sprintf("%s.%d", h.run, seq) }

// parseCursor returns the seq of a cursor; false if the cursor is malformed, of another run, or ahead of this hub.
func (h *hub) parseCursor(cursor string) (uint64, bool) {
	run, number, _ := strings.Cut(cursor, ".")
	seq, err := strconv.ParseUint(number, 10, 64)
	if err != nil || run != h.run {
		return 0, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return seq, seq <= h.seq
}
