package main

import (
	"errors"
	"strings"
	"time"

	"k8s.io/client-go/features"
	"k8s.io/client-go/tools/cache"
)

// kinds are the queues that the trace is played into, the oldest first.
var kinds = []struct {
	name string
	make func(known) cache.Queue
}{
	{"DeltaFIFO", func(known known) cache.Queue { return newDeltaFIFO(known) }},
	{"RealFIFO, event by event", func(known known) cache.Queue { return newRealFIFO(known) }},
	{"RealFIFO, AtomicEvents", func(known) cache.Queue { return newAtomicFIFO() }},
}

// newDeltaFIFO makes the queue that informers had until the gate InOrderInformers. That gate can no longer
// be turned off, so no informer makes one any more (controller.go, newQueueFIFO).
func newDeltaFIFO(known known) *cache.DeltaFIFO {
	return cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: known, EmitDeltaTypeReplaced: true})
}

// newRealFIFO makes the queue as it is without the gate AtomicFIFO: it asks the consumer's store, and
// takes a list apart into one delta for each object.
func newRealFIFO(known known) *cache.RealFIFO {
	return cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{KnownObjects: known})
}

// newAtomicFIFO makes the queue as an informer of today has it. It must not be given the store: a list is
// one delta, ReplacedAll, and whoever pops it finds out against the store what is gone.
func newAtomicFIFO() *cache.RealFIFO {
	return cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{
		AtomicEvents: true, UnlockWhileProcessing: true, EmitDeltaTypeBookmark: true,
	})
}

// gates are those that decide what an informer's queue is like.
var gates = []struct {
	feature features.Feature
	changes string
}{
	{features.InOrderInformers, "RealFIFO in place of DeltaFIFO. Locked: it cannot be turned off"},
	{features.AtomicFIFO, "a list is one delta, bookmarks are deltas, the store knows its resourceVersion"},
	{features.UnlockWhileProcessingFIFO, "the reflector does not wait for the handlers; needs AtomicFIFO"},
	{features.InOrderInformersBatchProcess, "the informer calls PopBatch, not Pop: one lock of the store for many deltas"},
}

// popAll pops until the queue is empty. Each string is what one Pop gave.
func popAll(queue cache.Queue) ([]string, error) {
	var popped []string
	queue.Close() // from here on Pop does not wait: it takes what there is and then returns ErrFIFOClosed
	for {
		_, err := queue.Pop(func(obj any, _ bool) error {
			popped = append(popped, strings.Join(shortDeltas(obj.(cache.Deltas)), ", "))
			return nil
		})
		if errors.Is(err, cache.ErrFIFOClosed) {
			return popped, nil
		}
		if err != nil {
			return popped, err
		}
	}
}

// popBatches is popAll with PopBatch. Each slice is one batch.
func popBatches(queue cache.QueueWithBatch) ([][]string, error) {
	var popped [][]string
	queue.Close()
	for {
		err := queue.PopBatch(func(deltas []cache.Delta, _ bool) error {
			popped = append(popped, shortDeltas(deltas))
			return nil
		}, func(obj any, _ bool) error {
			// A batch of one comes here.
			popped = append(popped, shortDeltas(obj.(cache.Deltas)))
			return nil
		})
		if errors.Is(err, cache.ErrFIFOClosed) {
			return popped, nil
		}
		if err != nil {
			return popped, err
		}
	}
}

func shortDeltas(deltas []cache.Delta) []string {
	all := make([]string, len(deltas))
	for i, delta := range deltas {
		all[i] = shortDelta(delta)
	}
	return all
}

// popsUntilSynced gives an empty queue a first list of three objects and counts the pops until it says
// that it has synced.
func popsUntilSynced(queue cache.Queue) (int, error) {
	if err := replace(4, object("a", 1), object("b", 2), object("c", 3))(queue); err != nil {
		return 0, err
	}
	pops := 0
	for !queue.HasSynced() {
		if _, err := queue.Pop(func(any, bool) error { return nil }); err != nil {
			return pops, err
		}
		pops++
	}
	return pops, nil
}

// canAddWhileProcessing pops one delta and tries to add another before the pop is over. It gives the
// attempt so much time to succeed; after the pop it always does.
func canAddWhileProcessing(queue cache.Queue, patience time.Duration) (bool, error) {
	if err := queue.Add(object("first", 1)); err != nil {
		return false, err
	}
	done := make(chan error, 1)
	added := false
	_, err := queue.Pop(func(any, bool) error {
		go func() { done <- queue.Add(object("second", 2)) }()
		select {
		case err := <-done:
			added = true
			return err
		case <-time.After(patience):
			return nil
		}
	})
	if err != nil || added {
		return added, err
	}
	return false, <-done
}
