package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/testserver"
)

// popped plays a trace into a queue and returns what each Pop gives.
func popped(g Gomega, queue cache.Queue, calls ...func(cache.Queue) error) []string {
	for _, call := range calls {
		g.Expect(call(queue)).To(Succeed())
	}
	popped, err := popAll(queue)
	g.Expect(err).NotTo(HaveOccurred())
	return popped
}

func TestProgramPrintsBothQueuesSideBySide(t *testing.T) {
	g := NewWithT(t)
	out, err := testserver.Lesson(t, program)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(ContainSubstring("1  Added c@11, Updated c@13, Deleted (c@13)  Added c@11                Added c@11"))
	g.Expect(out).To(ContainSubstring("3  Deleted b@14, Added b@15, Replaced b@15   Updated c@13              Updated c@13"))
	g.Expect(out).To(ContainSubstring(".                                         Deleted (d@3)             ReplacedAll [a@12 b@15 e@17] at 18"))
	g.Expect(out).To(ContainSubstring("OnDelete b, final state unknown; the last that was seen: b@6"))
	g.Expect(out).To(ContainSubstring("UnlockWhileProcessing=false  no"))
	g.Expect(out).To(ContainSubstring("UnlockWhileProcessing=true   yes"))
	g.Expect(out).To(ContainSubstring("AtomicFIFO                   true"))
}

// The heart of the lesson: one trace, three queues.
func TestOneTraceInThreeQueues(t *testing.T) {
	t.Parallel()
	want := map[string][]string{
		"DeltaFIFO": {
			"Added c@11, Updated c@13, Deleted (c@13)",
			"Updated a@12, Replaced a@12",
			"Deleted b@14, Added b@15, Replaced b@15",
			"Replaced e@17",
			"Deleted (d@3)",
		},
		"RealFIFO, event by event": {
			"Added c@11", "Updated a@12", "Updated c@13", "Deleted b@14", "Deleted b@14", "Added b@15",
			"Deleted (c@13)", "Deleted (d@3)", "Replaced a@12", "Replaced b@15", "Replaced e@17",
		},
		"RealFIFO, AtomicEvents": {
			"Added c@11", "Updated a@12", "Updated c@13", "Deleted b@14", "Deleted b@14", "Added b@15",
			"Bookmark 16", "ReplacedAll [a@12 b@15 e@17] at 18", "SyncAll",
		},
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			queue := kind.make(storeBefore())
			g.Expect(play(queue, trace)).To(Succeed())
			got, err := popAll(queue)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(want[kind.name]))
		})
	}
}

// randomCalls are a hundred adds, updates and deletions of a few keys, and how each reads as a delta.
func randomCalls(random *rand.Rand) (calls []func(cache.Queue) error, deltas, names []string) {
	for version := range 100 {
		name := fmt.Sprintf("o%d", random.IntN(5))
		verb := random.IntN(3)
		calls = append(calls, []func(string, int) func(cache.Queue) error{add, update, remove}[verb](name, version))
		deltas = append(deltas, fmt.Sprintf("%s %s@%d", []string{"Added", "Updated", "Deleted"}[verb], name, version))
		names = append(names, name)
	}
	return calls, deltas, names
}

func TestRealFIFOGivesBackWhatItWasToldInThatOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		g := NewWithT(t)
		calls, deltas, _ := randomCalls(rand.New(rand.NewPCG(seed, 1)))
		g.Expect(popped(g, newRealFIFO(known{}), calls...)).To(Equal(deltas), "event by event, seed %d", seed)
		g.Expect(popped(g, newAtomicFIFO(), calls...)).To(Equal(deltas), "atomic, seed %d", seed)
	}
}

// DeltaFIFO: one Pop for each key, in the order in which the keys first came; inside, the key's own order,
// with deletions in a row made one, and deletions of what is not known left out.
func TestDeltaFIFOGroupsByKey(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		g := NewWithT(t)
		calls, deltas, names := randomCalls(rand.New(rand.NewPCG(seed, 1)))
		var keys []string
		byKey := map[string][]string{}
		for i, name := range names {
			deleted := strings.HasPrefix(deltas[i], "Deleted")
			before := byKey[name]
			if deleted && (len(before) == 0 || strings.HasPrefix(before[len(before)-1], "Deleted")) {
				continue
			}
			if len(before) == 0 {
				keys = append(keys, name)
			}
			byKey[name] = append(before, deltas[i])
		}
		want := make([]string, len(keys))
		for i, key := range keys {
			want[i] = strings.Join(byKey[key], ", ")
		}
		g.Expect(popped(g, newDeltaFIFO(known{}), calls...)).To(Equal(want), "seed %d", seed)
	}
}

// Where both deletions are of one object, DeltaFIFO keeps the one that knows the final state.
func TestDeltaFIFOKeepsTheDeletionThatKnowsMore(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	tombstone := func(queue cache.Queue) error {
		return queue.Delete(cache.DeletedFinalStateUnknown{Key: "a", Obj: object("a", 1)})
	}
	store := known{object("a", 1)}
	g.Expect(popped(g, newDeltaFIFO(store), remove("a", 2), tombstone)).To(Equal([]string{"Deleted a@2"}))
	g.Expect(popped(g, newDeltaFIFO(store), tombstone, remove("a", 2))).To(Equal([]string{"Deleted a@2"}))
	g.Expect(popped(g, newRealFIFO(store), tombstone, remove("a", 2))).To(Equal([]string{"Deleted (a@1)", "Deleted a@2"}))
}

func TestOnlyDeltaFIFOIgnoresTheDeletionOfWhatNobodyKnew(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.Expect(popped(g, newDeltaFIFO(known{}), remove("never-there", 1))).To(BeEmpty())
	g.Expect(popped(g, newRealFIFO(known{}), remove("never-there", 1))).To(Equal([]string{"Deleted never-there@1"}))
	g.Expect(popped(g, newAtomicFIFO(), remove("never-there", 1))).To(Equal([]string{"Deleted never-there@1"}))
}

func TestAnObjectWithoutAKeyIsRefused(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		g := NewWithT(t)
		queue := kind.make(known{})
		g.Expect(queue.Add("no object at all")).To(BeAssignableToTypeOf(cache.KeyError{}), kind.name)
		g.Expect(popped(g, queue)).To(BeEmpty(), kind.name)
	}
}

// Pop waits for ever on an empty queue; Close is what ends it, after what is queued was popped.
func TestCloseLetsTheQueueRunEmpty(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		g := NewWithT(t)
		queue := kind.make(known{})
		g.Expect(queue.Add(object("a", 1))).To(Succeed())
		queue.Close()
		got, err := queue.Pop(func(any, bool) error { return nil })
		g.Expect(err).NotTo(HaveOccurred(), kind.name)
		g.Expect(got).To(HaveLen(1), kind.name)
		_, err = queue.Pop(func(any, bool) error { return nil })
		g.Expect(err).To(MatchError(cache.ErrFIFOClosed), kind.name)
	}
}

// Nobody puts a delta back: an error of the consumer is returned, and the delta is gone.
func TestADeltaThatFailsIsNotQueuedAgain(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		g := NewWithT(t)
		queue := kind.make(known{})
		g.Expect(queue.Add(object("a", 1))).To(Succeed())
		_, err := queue.Pop(func(any, bool) error { return fmt.Errorf("no") })
		g.Expect(err).To(MatchError("no"), kind.name)
		g.Expect(popped(g, queue)).To(BeEmpty(), kind.name)
	}
}

// Every object passes the transform once, on its way in; a tombstone carries what passed it before.
func TestTheTransformIsCalledOnTheWayIn(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	calls := 0
	queue := cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{
		KnownObjects: known{object("d", 3)},
		Transformer: func(obj any) (any, error) {
			calls++
			return obj, nil
		},
	})
	g.Expect(add("a", 4)(queue)).To(Succeed())
	g.Expect(calls).To(Equal(1), "before anything is popped")
	g.Expect(replace(5, object("a", 4), object("b", 5))(queue)).To(Succeed())
	g.Expect(calls).To(Equal(3), "the two of the list, and not the tombstone of d")
	g.Expect(popped(g, queue)).To(Equal([]string{"Added a@4", "Deleted (d@3)", "Replaced a@4", "Replaced b@5"}))
	g.Expect(calls).To(Equal(3))
}
