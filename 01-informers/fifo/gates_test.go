package main

import (
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

func fill(g Gomega, queue cache.Queue, objects int) {
	for i := range objects {
		g.Expect(queue.Add(object(fmt.Sprintf("o%d", i), i))).To(Succeed())
	}
}

// sizes returns the sizes of the batches of a queue.
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

// The queue reports for a whole batch whether it is in the first list.
func TestABatchEndsWithTheFirstList(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	queue := newRealFIFO(known{})
	g.Expect(replace(9, object("a", 1), object("b", 2))(queue)).To(Succeed())
	fill(g, queue, 3)
	g.Expect(sizes(g, queue)).To(Equal([]int{2, 3}))
}

// The two functions of PopBatch must do the same: the number of deltas decides which one is called.
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

func TestTheReflectorWaitsForTheHandlers(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.Expect(canAddWhileProcessing(newDeltaFIFO(known{}), 50*time.Millisecond)).To(BeFalse())

	// With two full batches UnlockWhileProcessing has no effect: slow handlers do not make the queue grow without bound.
	queue := newAtomicFIFO()
	fill(g, queue, 2000)
	g.Expect(canAddWhileProcessing(queue, 50*time.Millisecond)).To(BeFalse())
}

func TestOptionsThatContradictEachOtherPanic(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		options cache.RealFIFOOptions
		message string
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
			g.Expect(func() { cache.NewRealFIFOWithOptions(test.options) }).To(PanicWith(ContainSubstring(test.message)))
		})
	}
}

// specs collects the declarations of client-go's feature gates.
type specs map[features.Feature]features.VersionedSpecs

// AddVersioned implements features.VersionedRegistry.
func (s specs) AddVersioned(in map[features.Feature]features.VersionedSpecs) error {
	maps.Copy(s, in)
	return nil
}

func TestDefaultsOfTheFeatureGates(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	declared := specs{}
	g.Expect(features.AddVersionedFeaturesToExistingFeatureGates(declared)).To(Succeed())
	newest := func(feature features.Feature) features.FeatureSpec {
		versions := declared[feature]
		return versions[len(versions)-1]
	}
	g.Expect(newest(features.InOrderInformers).LockToDefault).To(BeTrue(), "no informer has a DeltaFIFO any more")
	for _, gate := range gates {
		g.Expect(newest(gate.feature).Default).To(BeTrue(), string(gate.feature))
	}
	for _, feature := range []features.Feature{features.AtomicFIFO, features.UnlockWhileProcessingFIFO, features.InOrderInformersBatchProcess} {
		g.Expect(newest(feature).PreRelease).To(BeEquivalentTo("BETA"), string(feature))
	}
}

// The feature gates change the queue, not the notifications. Without atomic events the store has no resourceVersion.
func TestNotificationsAreTheSameUnderAllGates(t *testing.T) {
	for _, atomic := range []bool{true, false} {
		for _, batch := range []bool{true, false} {
			t.Run(fmt.Sprintf("AtomicFIFO=%t,InOrderInformersBatchProcess=%t", atomic, batch), func(t *testing.T) {
				featurestesting.SetFeatureDuringTest(t, features.AtomicFIFO, atomic)
				featurestesting.SetFeatureDuringTest(t, features.InOrderInformersBatchProcess, batch)
				version, later := `"10"`, `"12"`
				if !atomic {
					version, later = `""`, `""`
				}
				synctest.Test(t, func(t *testing.T) {
					NewWithT(t).Expect(relist(t.Context())).To(Equal([]string{
						"OnAdd    a@1, initial list: true",
						"OnAdd    b@2, initial list: true",
						"OnUpdate b@2 -> b@6",
						"OnDelete b, final state unknown; last known state: b@6",
						"OnUpdate a@1 -> a@1",
						"OnAdd    z@10, initial list: false",
						"the store's resourceVersion: " + version,
						"after a bookmark, and no other event: " + later,
					}))
				})
			})
		}
	}
}
