// Package hotfirst is exercise 24c: an event handler that keeps the priorities of the queue.
package hotfirst

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"example.com/workbook/shared/exercise/check"
)

// Entry is what the reader repairs.
type Entry func() handler.EventHandler

const patience = 10 * time.Second

// backlog is how many ConfigMaps the first list brings, and among the first how many a change has to be.
const backlog, first = 100, 3

// Check runs a controller with the handler, and calls it.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("each ConfigMap of the first list leads to a reconciliation of its Lolcow", func(b *check.B) {
		s := newScene(b, work.Entry, 3)
		s.release()
		s.handedOut("cow-0", "cow-1", "cow-2")
	})
	if !ok {
		return
	}
	t.Behaviour("so does one that is created, changed or deleted, with the label of before and of now", func(b *check.B) {
		s := newScene(b, work.Entry, 1)
		s.release()
		s.handedOut("cow-0")
		s.create("new")
		s.handedOut("new")
		s.change("new", `{"metadata":{"labels":{"lolcow":"calf"}}}`)
		s.handedOut("new", "calf")
		s.remove()
		s.handedOut("calf")
	})
	priorities(t, work.Entry)
	t.Behaviour("a change is among the first that are handed out after a restart", func(b *check.B) {
		s := newScene(b, work.Entry, backlog)
		hot := s.waitingLast()
		s.change(hot, `{"data":{"greeting":"Moo"}}`)
		s.update()
		s.release()
		s.expectAmongFirst(hot)
	})
	t.Behaviour("so is a ConfigMap that is created then", func(b *check.B) {
		s := newScene(b, work.Entry, backlog)
		s.waitingLast()
		s.create("hot")
		s.created(backlog + 1)
		s.release()
		s.expectAmongFirst("hot")
	})
	t.Behaviour("a queue without priorities gets each key, too", func(b *check.B) {
		expectPlain(b, work.Entry)
	})
}

// priorities calls the handler.
func priorities(t *check.T, entry Entry) {
	same := configMap("cow", "7")
	t.Behaviour("a resync without a change has the low priority, and so has what the first list brings", func(b *check.B) {
		expectPriority(b, entry, "a resync", handler.LowPriority, func(h handler.EventHandler, q keys) {
			h.Update(b.Context(), updateEvent(same, same), q)
		})
		expectPriority(b, entry, "the first list", handler.LowPriority, func(h handler.EventHandler, q keys) {
			h.Create(b.Context(), event.CreateEvent{Object: same, IsInInitialList: true}, q)
		})
	})
	t.Behaviour("an event about a change has the priority 0", func(b *check.B) {
		expectPriority(b, entry, "a creation", 0, func(h handler.EventHandler, q keys) {
			h.Create(b.Context(), event.CreateEvent{Object: same}, q)
		})
		expectPriority(b, entry, "an update", 0, func(h handler.EventHandler, q keys) {
			h.Update(b.Context(), updateEvent(same, configMap("cow", "8")), q)
		})
		expectPriority(b, entry, "the loss of the label", 0, func(h handler.EventHandler, q keys) {
			h.Update(b.Context(), updateEvent(same, configMap("", "8")), q)
		})
		expectPriority(b, entry, "a deletion", 0, func(h handler.EventHandler, q keys) {
			h.Delete(b.Context(), event.DeleteEvent{Object: same}, q)
		})
		expectPriority(b, entry, "a generic event", 0, func(h handler.EventHandler, q keys) {
			h.Generic(b.Context(), event.GenericEvent{Object: same}, q)
		})
	})
}
