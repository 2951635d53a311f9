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

// popped makes the calls and returns the result of each Pop.
func popped(g Gomega, queue cache.Queue, calls ...func(cache.Queue) error) []string {
	for _, call := range calls {
		g.Expect(call(queue)).To(Succeed())
	}
	popped, err := popAll(queue)
	g.Expect(err).NotTo(HaveOccurred())
	return popped
}

// It is not parallel, because other tests change the feature gates.
func TestProgram(t *testing.T) { testserver.ExpectOutput(t, program) }

// randomCalls returns a hundred adds, updates and deletions of a few keys, with their deltas and names.
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

func TestRealFIFOKeepsEveryEventInOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		g := NewWithT(t)
		calls, deltas, _ := randomCalls(rand.New(rand.NewPCG(seed, 1)))
		g.Expect(popped(g, newRealFIFO(known{}), calls...)).To(Equal(deltas), "event by event, seed %d", seed)
		g.Expect(popped(g, newAtomicFIFO(), calls...)).To(Equal(deltas), "atomic, seed %d", seed)
	}
}

// Each Pop returns the deltas of one key. The keys are in the order of their first delta. Of deletions in a row, one is
// left, and deletions of unknown objects are left out.
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

// Of two deletions of one object, DeltaFIFO keeps the one with the final state.
func TestDeltaFIFOKeepsTheDeletionWithTheFinalState(t *testing.T) {
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

func TestAnObjectWithoutAKeyIsRejected(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		g := NewWithT(t)
		queue := kind.make(known{})
		g.Expect(queue.Add("no object at all")).To(BeAssignableToTypeOf(cache.KeyError{}), kind.name)
		g.Expect(popped(g, queue)).To(BeEmpty(), kind.name)
	}
}

// Pop waits on an empty queue. After Close it returns what is queued, and then an error.
func TestPopReturnsQueuedDeltasAfterClose(t *testing.T) {
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

func TestADeltaIsNotQueuedAgainAfterAnError(t *testing.T) {
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

// The object of a tombstone is from the store, so it was transformed before.
func TestObjectsAreTransformedOnceWhenTheyAreQueued(t *testing.T) {
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
	g.Expect(calls).To(Equal(3), "the two objects of the list, and not the tombstone of d")
	g.Expect(popped(g, queue)).To(Equal([]string{"Added a@4", "Deleted (d@3)", "Replaced a@4", "Replaced b@5"}))
	g.Expect(calls).To(Equal(3))
}
