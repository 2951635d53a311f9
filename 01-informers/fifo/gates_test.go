package main

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/tools/cache"
)

func TestPopBatchNeverHoldsOneKeyTwice(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	queue := newAtomicFIFO()
	g.Expect(play(queue, trace)).To(Succeed())
	got, err := popBatches(queue)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(Equal([][]string{
		{"Added c@11", "Updated a@12"},
		{"Updated c@13", "Deleted b@14"},
		{"Deleted b@14"},
		{"Added b@15"},
		{"Bookmark 16"},
		{"ReplacedAll [a@12 b@15 e@17] at 18"},
		{"SyncAll"},
	}), "what is about all objects is a batch of its own")
}

func fill(g Gomega, queue cache.Queue, objects int) {
	for i := range objects {
		g.Expect(queue.Add(object(fmt.Sprintf("o%d", i), i))).To(Succeed())
	}
}

// The sizes of the batches of a queue, one after the other.
func sizes(g Gomega, queue cache.QueueWithBatch) []int {
	batches, err := popBatches(queue)
	g.Expect(err).NotTo(HaveOccurred())
	sizes := make([]int, len(batches))
	for i, batch := range batches {
		sizes[i] = len(batch)
	}
	return sizes
}

func TestABatchHasAtMost1000Deltas(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	queue := newAtomicFIFO()
	fill(g, queue, 2001)
	g.Expect(sizes(g, queue)).To(Equal([]int{1000, 1000, 1}))
}

// Otherwise the queue could not say of a batch whether it belongs to the first list.
func TestABatchDoesNotReachBeyondTheFirstList(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	queue := newRealFIFO(known{})
	g.Expect(replace(9, object("a", 1), object("b", 2))(queue)).To(Succeed())
	fill(g, queue, 3)
	g.Expect(sizes(g, queue)).To(Equal([]int{2, 3}))
}

// The two functions of PopBatch must do the same: which one is called depends on how many there are.
func TestABatchOfOneIsProcessedAsASingleDelta(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	queue := newAtomicFIFO()
	var called []string
	pop := func() {
		g.Expect(queue.PopBatch(
			func([]cache.Delta, bool) error { called = append(called, "batch"); return nil },
			func(any, bool) error { called = append(called, "single"); return nil },
		)).To(Succeed())
	}
	fill(g, queue, 1)
	pop()
	fill(g, queue, 2)
	pop()
	g.Expect(called).To(Equal([]string{"single", "batch"}))
}

func TestTheReflectorWaitsForTheHandlersUnlessTheQueueUnlocks(t *testing.T) {
	t.Parallel()
	locked := func() cache.Queue {
		return cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{AtomicEvents: true})
	}
	tests := map[string]struct {
		queue    cache.Queue
		patience time.Duration
		want     bool
	}{
		"DeltaFIFO":                       {newDeltaFIFO(known{}), 50 * time.Millisecond, false},
		"RealFIFO, locked":                {locked(), 50 * time.Millisecond, false},
		"RealFIFO, UnlockWhileProcessing": {newAtomicFIFO(), 10 * time.Second, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			g.Expect(canAddWhileProcessing(test.queue, test.patience)).To(Equal(test.want))
		})
	}
}

// With two full batches waiting the lock is held again: a queue does not grow without bound because its
// handlers are slow.
func TestAFullQueueHoldsTheReflectorBack(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	queue := newAtomicFIFO()
	fill(g, queue, 2000)
	g.Expect(canAddWhileProcessing(queue, 50*time.Millisecond)).To(BeFalse())
}

func TestOptionsThatContradictEachOtherPanic(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		options cache.RealFIFOOptions
		says    string
	}{
		"atomic with a store":       {cache.RealFIFOOptions{AtomicEvents: true, KnownObjects: known{}}, "knownObjects must not be provided"},
		"event by event without":    {cache.RealFIFOOptions{}, "knownObjects must be provided"},
		"unlocked, event by event":  {cache.RealFIFOOptions{KnownObjects: known{}, UnlockWhileProcessing: true}, "UnlockWhileProcessing must be false"},
		"bookmarks, event by event": {cache.RealFIFOOptions{KnownObjects: known{}, EmitDeltaTypeBookmark: true}, "EmitDeltaTypeBookmark must be false"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			g.Expect(func() { cache.NewRealFIFOWithOptions(test.options) }).To(PanicWith(ContainSubstring(test.says)))
		})
	}
}

// specs collects client-go's gates as it declares them.
type specs map[features.Feature]features.VersionedSpecs

// AddVersioned implements features.VersionedRegistry.
func (s specs) AddVersioned(in map[features.Feature]features.VersionedSpecs) error {
	maps.Copy(s, in)
	return nil
}

func TestWhatTheGatesAreAtThisVersion(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	declared := specs{}
	g.Expect(features.AddVersionedFeaturesToExistingFeatureGates(declared)).To(Succeed())
	newest := func(feature features.Feature) features.FeatureSpec {
		versions := declared[feature]
		return versions[len(versions)-1]
	}
	g.Expect(newest(features.InOrderInformers).LockToDefault).To(BeTrue(), "no informer runs on DeltaFIFO any more")
	for _, gate := range gates {
		g.Expect(newest(gate.feature).Default).To(BeTrue(), string(gate.feature))
	}
	for _, feature := range []features.Feature{features.AtomicFIFO, features.UnlockWhileProcessingFIFO, features.InOrderInformersBatchProcess} {
		g.Expect(newest(feature).PreRelease).To(BeEquivalentTo("BETA"), string(feature))
	}
}

// The gates change how the queue does it. What a handler is told is the same; only without atomic events
// does the store not know its version.
func TestHandlersAreToldTheSameUnderAllGates(t *testing.T) {
	for _, atomic := range []bool{true, false} {
		for _, batch := range []bool{true, false} {
			t.Run(fmt.Sprintf("AtomicFIFO=%t,InOrderInformersBatchProcess=%t", atomic, batch), func(t *testing.T) {
				featurestesting.SetFeatureDuringTest(t, features.AtomicFIFO, atomic)
				featurestesting.SetFeatureDuringTest(t, features.InOrderInformersBatchProcess, batch)
				seen, seenLater := `"10"`, `"12"`
				if !atomic {
					seen, seenLater = `""`, `""`
				}
				synctest.Test(t, func(t *testing.T) {
					g := NewWithT(t)
					var told []string
					g.Expect(newStory().play(context.Background(), func(line string) { told = append(told, line) })).To(Succeed())
					g.Expect(told).To(Equal([]string{
						"OnAdd    a@1, initial list: true",
						"OnAdd    b@2, initial list: true",
						"OnUpdate b@2 -> b@6",
						"OnDelete b, final state unknown; the last that was seen: b@6",
						"OnUpdate a@1 -> a@1",
						"OnAdd    z@10, initial list: false",
						"the store has seen version " + seen,
						"after a bookmark, and no other event: " + seenLater,
					}))
				})
			})
		}
	}
}
