package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	"k8s.io/client-go/tools/cache"
)

const (
	changes = 400
	objects = 100
)

// event says that an object's number was changed by so much.
type event struct {
	key cache.ObjectName
	by  int
}

// numbers are what is wanted, or what is there: one for each object.
type numbers map[cache.ObjectName]int

// right is how many objects are as they are wanted.
func (actual numbers) right(wanted numbers) (right int) {
	for key, want := range wanted {
		if actual[key] == want {
			right++
		}
	}
	return right
}

// apply believes an event.
func (actual numbers) apply(event event) { actual[event.key] += event.by }

// outcome compares a handler that believes events with a loop that looks.
type outcome struct {
	lost, twice                     int
	edgeRight, edgeRightAfterList   int
	levelRight, levelRightAfterList int
	levelPasses                     int
}

// edgeAndLevel changes objects at random, garbles the events, and plays them to both. The same seed gives
// the same events.
func edgeAndLevel(ctx context.Context, seed uint64) (outcome, error) {
	random := rand.New(rand.NewPCG(seed, 0))
	wanted, told := changeAtRandom(random)
	told, result := garble(random, told)

	edge := numbers{}
	for _, event := range told {
		edge.apply(event)
	}
	result.edgeRight = edge.right(wanted)

	level := numbers{}
	keys := make([]cache.ObjectName, len(told))
	for i, event := range told {
		keys[i] = event.key
	}
	var err error
	if result.levelPasses, err = converge(ctx, wanted, level, keys); err != nil {
		return result, err
	}
	result.levelRight = level.right(wanted)

	// A list, as after a gap or a restart: every object that there is, once more, and nothing has changed.
	for key := range wanted {
		edge.apply(event{key, 0})
	}
	if _, err := converge(ctx, wanted, level, slices.Collect(maps.Keys(wanted))); err != nil {
		return result, err
	}
	result.edgeRightAfterList, result.levelRightAfterList = edge.right(wanted), level.right(wanted)
	return result, nil
}

// changeAtRandom returns what is wanted after all changes, and the events as they should be told. Every
// object is changed at least once.
func changeAtRandom(random *rand.Rand) (numbers, []event) {
	wanted, told := numbers{}, []event{}
	for i := range changes {
		object := i
		if i >= objects {
			object = random.IntN(objects)
		}
		key, by := cache.NewObjectName("shop", fmt.Sprintf("object-%d", object)), 1+random.IntN(9)
		wanted[key] += by
		told = append(told, event{key, by})
	}
	return wanted, told
}

// garble loses a third of the events, tells a fifth of the rest twice, and changes their order.
func garble(random *rand.Rand, told []event) (garbled []event, result outcome) {
	for _, event := range told {
		if random.IntN(3) == 0 {
			result.lost++
			continue
		}
		garbled = append(garbled, event)
		if random.IntN(5) == 0 {
			garbled = append(garbled, event)
			result.twice++
		}
	}
	random.Shuffle(len(garbled), func(i, j int) { garbled[i], garbled[j] = garbled[j], garbled[i] })
	return garbled, result
}

// converge adds the keys and works until none waits. A pass looks at what is wanted, not at what happened.
func converge(ctx context.Context, wanted, actual numbers, keys []cache.ObjectName) (passes int, err error) {
	var lock sync.Mutex
	loop := &loop{queue: newQueue(), reconcile: func(_ context.Context, key cache.ObjectName) error {
		lock.Lock()
		defer lock.Unlock()
		passes++
		actual[key] = wanted[key]
		return nil
	}}
	for _, key := range keys {
		loop.queue.Add(key)
	}
	loop.queue.ShutDown() // what waits is still worked on
	loop.run(ctx, 4)
	return passes, ctx.Err()
}
