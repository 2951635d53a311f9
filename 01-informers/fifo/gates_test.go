package main

import (
	"fmt"
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
func sizes(queue cache.QueueWithBatch) []int {
	batches := popBatches(queue)
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
	g.Expect(sizes(queue)).To(Equal([]int{1000, 1000, 1}))
}

func TestTheReflectorWaitsWhileADeltaIsProcessed(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.Expect(canAddWhileProcessing(newDeltaFIFO(known{}), 50*time.Millisecond)).To(BeFalse())

	// With two full batches UnlockWhileProcessing has no effect: the queue does not grow without bound.
	queue := newAtomicFIFO()
	fill(g, queue, 2000)
	g.Expect(canAddWhileProcessing(queue, 50*time.Millisecond)).To(BeFalse())
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
