package main

import (
	"errors"
	"strings"
	"time"

	"k8s.io/client-go/features"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/lesson"
)

// kinds are the queues that the lesson compares, the oldest first.
var kinds = []struct {
	name string
	make func(known) cache.Queue
}{
	{"DeltaFIFO", func(known known) cache.Queue { return newDeltaFIFO(known) }},
	{"RealFIFO, event by event", func(known known) cache.Queue { return newRealFIFO(known) }},
	{"RealFIFO, AtomicEvents", func(known) cache.Queue { return newAtomicFIFO() }},
}

// newDeltaFIFO makes the queue of informers before the feature gate InOrderInformers. That gate is locked, so no informer
// has this queue any more (controller.go, newQueueFIFO).
func newDeltaFIFO(known known) *cache.DeltaFIFO {
	return cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: known, EmitDeltaTypeReplaced: true})
}

// newRealFIFO makes the queue of informers without the feature gate AtomicFIFO. It compares a list with the consumer's
// store, and has one delta for each object of the list.
func newRealFIFO(known known) *cache.RealFIFO {
	return cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{KnownObjects: known})
}

// newAtomicFIFO makes the queue of informers with the default feature gates. It does not have the store: a list is one
// delta, ReplacedAll, and the consumer compares it with the store to find deletions.
func newAtomicFIFO() *cache.RealFIFO {
	return cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{
		AtomicEvents: true, UnlockWhileProcessing: true, EmitDeltaTypeBookmark: true,
	})
}

// gates are the feature gates that change the queue of an informer.
var gates = []struct {
	feature features.Feature
	effect  string
}{
	{features.InOrderInformers, "RealFIFO instead of DeltaFIFO. Locked: it cannot be disabled"},
	{features.AtomicFIFO, "a list is one delta, bookmarks are deltas, the store knows its resourceVersion"},
	{features.UnlockWhileProcessingFIFO, "the reflector does not wait while a delta is processed; requires AtomicFIFO"},
	{features.InOrderInformersBatchProcess, "the informer calls PopBatch, not Pop: it locks the store once for many deltas"},
}

// popAll pops until the queue is empty. It returns the deltas of each Pop.
func popAll(queue cache.Queue) (popped []string) {
	untilEmpty(queue, func() error {
		_, err := queue.Pop(func(obj any, _ bool) error {
			popped = append(popped, strings.Join(shortDeltas(obj.(cache.Deltas)), ", "))
			return nil
		})
		return err
	})
	return popped
}

// popBatches calls PopBatch until the queue is empty. It returns the deltas of each batch.
func popBatches(queue cache.QueueWithBatch) (popped [][]string) {
	untilEmpty(queue, func() error {
		var batch []cache.Delta
		err := queue.PopBatch(
			func(deltas []cache.Delta, _ bool) error { batch = deltas; return nil },
			func(obj any, _ bool) error { batch = obj.(cache.Deltas); return nil }, // for a batch of one
		)
		if err == nil {
			popped = append(popped, shortDeltas(batch))
		}
		return err
	})
	return popped
}

func untilEmpty(queue cache.Queue, pop func() error) {
	queue.Close() // After that, Pop returns ErrFIFOClosed instead of waiting.
	err := pop()
	for err == nil {
		err = pop()
	}
	if !errors.Is(err, cache.ErrFIFOClosed) {
		lesson.Check(err)
	}
}

func shortDeltas(deltas []cache.Delta) []string {
	all := make([]string, len(deltas))
	for i, delta := range deltas {
		all[i] = strings.TrimSpace(string(delta.Type) + " " + short(delta.Object))
	}
	return all
}

// canAddWhileProcessing reports whether an Add returns within the timeout while another delta is being processed.
func canAddWhileProcessing(queue cache.Queue, timeout time.Duration) (added bool) {
	lesson.Check(queue.Add(object("first", 1)))
	done := make(chan error, 1)
	lesson.Must(queue.Pop(func(any, bool) error {
		go func() { done <- queue.Add(object("second", 2)) }()
		select {
		case err := <-done:
			added = true
			return err
		case <-time.After(timeout):
			return nil
		}
	}))
	if !added {
		lesson.Check(<-done)
	}
	return added
}
