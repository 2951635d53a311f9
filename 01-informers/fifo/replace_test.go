package main

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/cache"
)

// If the watch missed a deletion, only the comparison of a list with the store finds it.
func TestRelistFindsDeletions(t *testing.T) {
	t.Parallel()
	store := known{object("gone", 1), object("here", 2)}
	tests := map[string]struct {
		queue  cache.Queue
		before []func(cache.Queue) error
		want   []string
	}{
		"DeltaFIFO":                              {queue: newDeltaFIFO(store), want: []string{"Replaced here@5", "Deleted (gone@1)"}},
		"RealFIFO, deletions first":              {queue: newRealFIFO(store), want: []string{"Deleted (gone@1)", "Replaced here@5"}},
		"RealFIFO, atomic, without a comparison": {queue: newAtomicFIFO(), want: []string{"ReplacedAll [here@5] at 9"}},
		"a queued update is newer than the store, DeltaFIFO": {
			queue: newDeltaFIFO(store), before: []func(cache.Queue) error{update("gone", 4)},
			want: []string{"Updated gone@4, Deleted (gone@4)", "Replaced here@5"},
		},
		"a queued update is newer than the store, RealFIFO": {
			queue: newRealFIFO(store), before: []func(cache.Queue) error{update("gone", 4)},
			want: []string{"Updated gone@4", "Deleted (gone@4)", "Replaced here@5"},
		},
		"a queued deletion is not repeated, DeltaFIFO": {
			queue: newDeltaFIFO(store), before: []func(cache.Queue) error{remove("gone", 4)},
			want: []string{"Deleted gone@4", "Replaced here@5"},
		},
		"a queued deletion is not repeated, RealFIFO": {
			queue: newRealFIFO(store), before: []func(cache.Queue) error{remove("gone", 4)},
			want: []string{"Deleted gone@4", "Replaced here@5"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			calls := append(test.before, replace(9, object("here", 5)))
			g.Expect(popped(g, test.queue, calls...)).To(Equal(test.want))
		})
	}
}

// A tombstone has the last known state of the object, if the store still has one.
func TestATombstoneMayHaveNoObject(t *testing.T) {
	t.Parallel()
	for name, queue := range map[string]cache.Queue{
		"DeltaFIFO": cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: onlyKeys{}}),
		"RealFIFO":  cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{KnownObjects: onlyKeys{}}),
	} {
		g := NewWithT(t)
		g.Expect(popped(g, queue, replace(9))).To(Equal([]string{"Deleted (lost@?)"}), name)
	}
}

// onlyKeys is a store from which the object is deleted between ListKeys and GetByKey.
type onlyKeys struct{}

func (onlyKeys) ListKeys() []string                 { return []string{"lost"} }
func (onlyKeys) GetByKey(string) (any, bool, error) { return nil, false, nil }

// Without EmitDeltaTypeReplaced, the default, a relist has the same deltas as a resync.
func TestDeltaFIFOEmitsSyncForAListByDefault(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	old := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{})
	g.Expect(popped(g, old, replace(9, object("a", 5)))).To(Equal([]string{"Sync a@5"}))
	g.Expect(popped(g, newDeltaFIFO(known{}), replace(9, object("a", 5)))).To(Equal([]string{"Replaced a@5"}))
}

// A resync queues the objects of the store, which are older than the queued events.
func TestResyncLeavesOutObjectsWithQueuedEvents(t *testing.T) {
	t.Parallel()
	store := known{object("a", 1), object("b", 2)}
	for name, queue := range map[string]cache.Queue{"DeltaFIFO": newDeltaFIFO(store), "RealFIFO": newRealFIFO(store)} {
		g := NewWithT(t)
		g.Expect(popped(g, queue, update("a", 5), cache.Queue.Resync)).To(Equal([]string{"Updated a@5", "Sync b@2"}), name)
	}
	g := NewWithT(t)
	g.Expect(popped(g, newAtomicFIFO(), update("a", 5), cache.Queue.Resync)).To(Equal([]string{"Updated a@5", "SyncAll"}),
		"the consumer takes the objects of SyncAll from the store, which has a@5 by then")
}

func TestHasSynced(t *testing.T) {
	t.Parallel()
	pop := func(queue cache.Queue) error {
		_, err := queue.Pop(func(any, bool) error { return nil })
		return err
	}
	first := replace(9, object("a", 1), object("b", 2))
	tests := map[string]struct {
		calls []func(cache.Queue) error
		want  map[string]bool
	}{
		"nothing happened":             {nil, map[string]bool{}},
		"the list is queued":           {[]func(cache.Queue) error{first}, map[string]bool{}},
		"one Pop":                      {[]func(cache.Queue) error{first, pop}, map[string]bool{"RealFIFO, AtomicEvents": true}},
		"as many as objects":           {[]func(cache.Queue) error{first, pop, add("c", 3), pop}, map[string]bool{"DeltaFIFO": true, "RealFIFO, event by event": true, "RealFIFO, AtomicEvents": true}},
		"an empty list":                {[]func(cache.Queue) error{replace(9)}, map[string]bool{"DeltaFIFO": true, "RealFIFO, event by event": true}},
		"an empty list, popped":        {[]func(cache.Queue) error{replace(9), add("a", 1), pop}, map[string]bool{"DeltaFIFO": true, "RealFIFO, event by event": true, "RealFIFO, AtomicEvents": true}},
		"an event that came before it": {[]func(cache.Queue) error{add("a", 1)}, map[string]bool{"DeltaFIFO": true, "RealFIFO, event by event": true, "RealFIFO, AtomicEvents": true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, kind := range kinds {
				g := NewWithT(t)
				queue := kind.make(known{})
				for _, call := range test.calls {
					g.Expect(call(queue)).To(Succeed())
				}
				g.Expect(queue.HasSynced()).To(Equal(test.want[kind.name]), kind.name)
				g.Expect(cache.IsDone(queue.HasSyncedChecker())).To(Equal(test.want[kind.name]), kind.name)
			}
		})
	}
}

// The consumer gets with each delta whether it is in the first list.
func TestOnlyTheFirstListIsTheInitialList(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		g := NewWithT(t)
		queue := kind.make(known{})
		initial := func() (initial bool) {
			_, err := queue.Pop(func(_ any, isInInitialList bool) error {
				initial = isInInitialList
				return nil
			})
			g.Expect(err).NotTo(HaveOccurred())
			return initial
		}
		g.Expect(replace(9, object("a", 1))(queue)).To(Succeed())
		g.Expect(initial()).To(BeTrue(), kind.name)
		g.Expect(replace(12, object("a", 11))(queue)).To(Succeed())
		g.Expect(initial()).To(BeFalse(), "%s: a relist", kind.name)
	}
}
