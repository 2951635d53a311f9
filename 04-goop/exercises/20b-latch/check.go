// Package latch is exercise 20b: work that ends, and does not begin again.
package latch

import (
	"context"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/shared/exercise/check"
)

// Entry is what the reader writes.
type Entry func(ctx context.Context, c client.Client, now time.Time, key client.ObjectKey) (reconcile.Result, error)

const (
	// workers is the jobCount of each Goop, and most how many calls it may need.
	workers = 3
	most    = 30
	ttl     = 100
	// more is how often it is called where it may return errors.
	more = 5
)

// Check runs Goops to their end, and beyond.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("a Goop is Complete when all its workers are done, and not earlier", func(b *check.B) {
		s := newScene(b, work.Entry, nil)
		s.settle()
		s.expectWorkers(workers)
		s.expectIncomplete("no worker is done")
		s.finish(workers - 1)
		s.settle()
		s.expectIncomplete("one worker is not done")
		s.finish(workers)
		s.settle()
		s.expectComplete()
	})
	if !ok {
		return
	}
	t.Behaviour("a worker that is deleted before the end is created again", func(b *check.B) {
		s := newScene(b, work.Entry, nil)
		s.settle()
		s.finish(workers - 1)
		s.settle()
		s.remove(1)
		s.settle()
		s.expectWorkers(workers)
		s.expectIncomplete("a worker was deleted, and created again")
	})
	checkEnd(t, work.Entry)
	checkTTL(t, work.Entry)
	checkOthers(t, work.Entry)
	t.Behaviour("at whichever write it crashes, each worker is created once, and the end is the same", func(b *check.B) {
		for _, after := range []bool{false, true} {
			for number := 1; ; number++ {
				s := newScene(b, work.Entry, new(int32(0)))
				s.process.CrashAt(number, after)
				s.settle()
				s.finish(workers)
				s.settle()
				s.settle()
				s.expectCreated(workers)
				s.expectComplete()
				s.expectWorkers(0)
				if !s.process.Crashed() {
					break
				}
			}
		}
	})
}

// checkEnd looks at what happens after the end.
func checkEnd(t *check.T, entry Entry) {
	t.Behaviour("what a user deletes after the end stays gone, and Complete stays True", func(b *check.B) {
		s := newScene(b, entry, nil)
		s.toTheEnd()
		s.expectWorkers(workers)
		s.remove(1)
		s.settle()
		s.expectWorkers(workers - 1)
		s.expectComplete()
		s.remove(0)
		s.remove(2)
		s.settle()
		s.expectWorkers(0)
		s.expectComplete()
	})
	t.Behaviour("after the end, what becomes of a worker does not change that it has ended", func(b *check.B) {
		s := newScene(b, entry, nil)
		s.toTheEnd()
		s.expectWorkers(workers)
		s.undo(0)
		s.later(time.Hour)
		s.settle()
		s.expectComplete()
	})
	t.Behaviour("without a TTL the workers stay", func(b *check.B) {
		s := newScene(b, entry, nil)
		s.toTheEnd()
		s.later(365 * 24 * time.Hour)
		s.settle()
		s.expectWorkers(workers)
	})
}

// checkTTL lets the TTL expire.
func checkTTL(t *check.T, entry Entry) {
	t.Behaviour("the workers stay until the TTL has expired, and then they are deleted", func(b *check.B) {
		s := newScene(b, entry, ptr.To[int32](ttl))
		s.toTheEnd()
		s.later((ttl - 1) * time.Second)
		s.settle()
		s.expectWorkers(workers)
		s.later(time.Second)
		s.settle()
		s.expectWorkers(0)
		s.expectComplete()
	})
	t.Behaviour("what happens meanwhile does not put the end of the TTL off", func(b *check.B) {
		s := newScene(b, entry, ptr.To[int32](ttl))
		s.toTheEnd()
		s.later(ttl / 2 * time.Second)
		s.remove(0)
		s.settle()
		s.later(ttl / 2 * time.Second)
		s.settle()
		s.expectWorkers(0)
	})
	t.Behaviour("it asks for the reconciliation in which the TTL has expired", func(b *check.B) {
		s := newScene(b, entry, ptr.To[int32](ttl))
		s.toTheEnd()
		s.later(ttl / 4 * time.Second)
		b.Event("the controller is restarted: what it has asked for is forgotten")
		s.settle()
		s.followRequeues()
		s.expectWorkers(0)
		s.expectComplete()
		s.expectNow(ttl * time.Second)
	})
	t.Behaviour("a TTL of 0 is over at once", func(b *check.B) {
		s := newScene(b, entry, new(int32(0)))
		s.toTheEnd()
		s.settle()
		s.expectWorkers(0)
		s.expectComplete()
	})
}

// checkOthers has ConfigMaps that the Goop does not control.
func checkOthers(t *check.T, entry Entry) {
	t.Behaviour("a ConfigMap that the Goop does not control is none of its workers", func(b *check.B) {
		s := newScene(b, entry, new(int32(0)))
		s.createOther("moo-notes")
		s.settle()
		s.expectWorkers(workers)
		s.finish(workers - 1)
		s.settle()
		s.expectIncomplete("one worker is not done")
		s.finish(workers)
		s.settle()
		s.settle()
		s.expectWorkers(0)
		s.expectComplete()
		s.expectOthers()
	})
	t.Behaviour("one that has the name of a worker is not counted, changed or deleted", func(b *check.B) {
		s := newScene(b, entry, ptr.To[int32](ttl))
		s.settle()
		s.replace(1)
		s.patch(0, "yes")
		s.patch(2, "yes")
		s.expectError(more, "a ConfigMap that the Goop does not control has the name of a worker")
		s.expectIncomplete("one worker is missing")
		s.expectOthers()
		s.remove(1)
		s.toTheEnd()
		s.expectComplete()
		s.replace(1)
		s.later(ttl * time.Second)
		s.settle()
		s.expectWorkers(0)
		s.expectOthers()
	})
	t.Behaviour("one that takes the name of a worker just before its deletion is not deleted", func(b *check.B) {
		s := newScene(b, entry, new(int32(0)))
		s.settle()
		s.finish(workers)
		s.replaceBeforeDelete()
		s.settle()
		s.settle()
		s.expectWorkers(0)
		s.expectOthers()
	})
}
