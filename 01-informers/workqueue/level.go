package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/lesson"
)

const (
	changes = 400
	objects = 100
)

// event reports a change of an object's number.
type event struct {
	key cache.ObjectName
	by  int
}

// state has a number for each object.
type state map[cache.ObjectName]int

// matches returns the number of objects in their desired state.
func (actual state) matches(desired state) (number int) {
	for key, want := range desired {
		if actual[key] == want {
			number++
		}
	}
	return number
}

func (actual state) apply(event event) { actual[event.key] += event.by }

// comparison has the number of objects in their desired state with each design: edge-triggered, and level-triggered before and
// after a list.
type comparison struct {
	lost, duplicated      int
	edge                  int
	level, levelAfterList int
	reconciliations       int
}

func (s steps) levelTriggered(ctx context.Context) {
	s.Printf("\n8. %d changes of %d objects, with lost events, duplicates, and a random order\n", changes, objects)
	result := compare(ctx, 1)
	s.Printf("   events: %d, lost: %d, duplicated: %d\n", changes, result.lost, result.duplicated)
	s.Printf("   a handler that applies each event:             %3d of %d objects are in the desired state\n", result.edge, objects)
	s.Printf("   a reconciler that gets keys:                   %3d of %d, after %d reconciliations\n", result.level, objects, result.reconciliations)
	s.Printf("   then every key once more, as after a list:     %3d of %d; the handler of events still %d\n",
		result.levelAfterList, objects, result.edge)
}

// compare gives the same events, with faults, to an edge-triggered handler and to a level-triggered loop. A seed stands
// for the same events in every run.
func compare(ctx context.Context, seed uint64) (result comparison) {
	random := rand.New(rand.NewPCG(seed, 0))
	desired, events := changeAtRandom(random)
	events, result = injectFaults(random, events)

	edge := state{}
	for _, event := range events {
		edge.apply(event)
	}
	result.edge = edge.matches(desired)

	level := state{}
	keys := make([]cache.ObjectName, len(events))
	for i, event := range events {
		keys[i] = event.key
	}
	result.reconciliations = reconcileAll(ctx, desired, level, keys)
	result.level = level.matches(desired)

	// A list, after a gap or a restart, notifies of each object once more, without a change: the handler of events has
	// nothing to apply.
	reconcileAll(ctx, desired, level, slices.Collect(maps.Keys(desired)))
	result.levelAfterList = level.matches(desired)
	return result
}

// changeAtRandom returns the desired state after all changes, and an event for each change. Every object changes at
// least once.
func changeAtRandom(random *rand.Rand) (state, []event) {
	desired, events := state{}, []event{}
	for i := range changes {
		object := i
		if i >= objects {
			object = random.IntN(objects)
		}
		key, by := cache.NewObjectName("shop", fmt.Sprintf("object-%d", object)), 1+random.IntN(9)
		desired[key] += by
		events = append(events, event{key, by})
	}
	return desired, events
}

// injectFaults drops a third of the events, duplicates a fifth of the rest, and changes their order.
func injectFaults(random *rand.Rand, events []event) (faulty []event, result comparison) {
	for _, event := range events {
		if random.IntN(3) == 0 {
			result.lost++
			continue
		}
		faulty = append(faulty, event)
		if random.IntN(5) == 0 {
			faulty = append(faulty, event)
			result.duplicated++
		}
	}
	random.Shuffle(len(faulty), func(i, j int) { faulty[i], faulty[j] = faulty[j], faulty[i] })
	return faulty, result
}

// reconcileAll adds the keys and runs the loop until the queue is empty. Each reconciliation reads the desired state.
func reconcileAll(ctx context.Context, desired, actual state, keys []cache.ObjectName) (reconciliations int) {
	var lock sync.Mutex
	loop := &loop{queue: newQueue(), reconcile: func(_ context.Context, key cache.ObjectName) error {
		lock.Lock()
		defer lock.Unlock()
		reconciliations++
		actual[key] = desired[key]
		return nil
	}}
	for _, key := range keys {
		loop.queue.Add(key)
	}
	loop.queue.ShutDown()
	loop.run(ctx, 4)
	lesson.Check(ctx.Err())
	return reconciliations
}
