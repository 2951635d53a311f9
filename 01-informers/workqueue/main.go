// Package main is the lesson on the work queue: what stands between the handlers of an informer and the
// workers of a controller. A handler adds a key; a worker gets it, brings the world to what the object says
// now, and says that it is done. Nothing here needs a cluster.
//
// Source, k8s.io/client-go v0.37.2, under util/workqueue; each file builds on the one before it:
//
//	queue.go                  Typed: queue, dirty and processing, the three parts of every promise
//	delaying_queue.go         AddAfter: a heap of keys that wait for their time
//	rate_limiting_queue.go    AddRateLimited, Forget, NumRequeues
//	default_rate_limiters.go  how long AddRateLimited waits
//	metrics.go                MetricsProvider
//
// The untyped names (RateLimitingInterface, NewNamedRateLimitingQueue and so on) are deprecated: a key has
// a type. controller-runtime has a priority queue of its own, and uses it by default
// (sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue): it coalesces and keeps a key to one worker
// as this one does, and changes the order.
package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"example.com/workbook/01-informers/internal/lesson"
)

// queue is what a controller has: keyed by the parts of a name, so that no worker has to split a string.
type queue = workqueue.TypedRateLimitingInterface[cache.ObjectName]

func main() { lesson.Main(program) }

var program = lesson.Lesson{
	Name:    "workqueue",
	Shows:   "The queue of a controller: coalescing, one worker for a key, back-off, Forget and Done, metrics, and the loop around it.",
	Offline: true,
	Run:     run,
}

func run(ctx context.Context, world *lesson.World) error {
	tellPromises(world)
	tellBackOff(world)
	tellHabits(world)
	tellMistakes(world)
	tellDelays(world)
	tellShutdown(world)
	tellMetrics(world)
	if err := tellLoop(ctx, world); err != nil {
		return err
	}
	return tellLevels(ctx, world)
}

func tellPromises(world *lesson.World) {
	world.Printf("1. A key that waits is there once\n")
	waiting, passes := coalesce(100)
	world.Printf("   one key added 100 times before a worker comes: %d waiting, %d pass\n", waiting, passes)

	world.Printf("\n2. No key is ever worked on twice at once\n")
	result := addWhileWorkedOn(100)
	world.Printf("   added 100 times while a worker has it:         %d waiting\n", result.waitingBefore)
	world.Printf("   when that worker says Done:                    %d waiting\n", result.waitingAfter)
	world.Printf("   passes in all:                                 %d\n", result.passes)
	crowd := stress(8, 3, 5000)
	world.Printf("   8 workers, 3 keys, 5000 Adds:                  at most %d worker on a key, no key forgotten: %t\n",
		crowd.perKey, crowd.allSeen)
}

func tellBackOff(world *lesson.World) {
	world.Printf("\n3. Rate limiting: the default limiter takes the longer of two delays\n")
	waits := delays(workqueue.NewTypedItemExponentialFailureRateLimiter[string](baseDelay, maxDelay), 20)
	world.Printf("   for each key, 5 ms doubled with each failure:  %v\n", waits[:6])
	world.Printf("   and never more than 1000 s:                    %v\n", waits[16:])
	world.Printf("   15 failures in a row take:                     %v\n", sum(waits[:15]))
	burst := bucketDelays(200)
	world.Printf("   for all keys together, 10 a second after 100:  the 100th %v, the 101st %v, the 200th %v\n",
		burst[99], burst[100], burst[199])
}

func tellHabits(world *lesson.World) {
	world.Printf("\n4. Forget is for the limiter, Done is for the queue. A key failed 4 times, then a pass went well, and then:\n")
	for _, habit := range habits {
		world.Printf("   %-22s %s\n", habit, consequencesOf(habit))
	}
}

func tellMistakes(world *lesson.World) {
	world.Printf("\n5. Other mistakes\n")
	world.Printf("   a pointer as key: two Adds of one object as it was read twice:  %d waiting\n", pointersAsKeys())
	world.Printf("   Done said twice for one Get: workers with that key at once:     %d\n", doneTwice())
	failures, next := handlerAddsRateLimited(5)
	world.Printf("   AddRateLimited in a handler: 5 events count as failures:        %d, the first real one waits %v\n", failures, next)
	world.Printf("   Forget before AddRateLimited: the back-off of failures in a row: %v\n", forgetThenFail(4))
}

func tellDelays(world *lesson.World) {
	world.Printf("\n6. AddAfter\n")
	for _, story := range delayStories {
		world.Printf("   %-58s %v\n", story.says+":", play(story))
	}
}

func tellShutdown(world *lesson.World) {
	world.Printf("\n7. The end. Both let the workers empty the queue; neither takes a new key.\n")
	for _, line := range shutdownLines() {
		world.Printf("   %s\n", line)
	}
}

func tellMetrics(world *lesson.World) {
	world.Printf("\n8. Metrics: two keys added, one added again while it waited, one failed and was added after a delay, one is being worked on\n")
	named, unnamed := newMeter(), newMeter()
	useQueue("foo", named)
	useQueue("", unnamed)
	for _, line := range named.lines() {
		world.Printf("   %s\n", line)
	}
	world.Printf("   a queue without a name: %d metrics\n", len(unnamed.lines()))
}

func tellLoop(ctx context.Context, world *lesson.World) error {
	world.Printf("\n9. The loop: 4 workers, at most 5 retries\n")
	outcomes, err := runLoop(ctx)
	if err != nil {
		return fmt.Errorf("running the loop: %w", err)
	}
	for _, outcome := range outcomes {
		world.Printf("   %s\n", outcome)
	}
	return nil
}

func tellLevels(ctx context.Context, world *lesson.World) error {
	world.Printf("\n10. %d changes of %d objects, told badly: some events are lost, some come twice, none in order\n", changes, objects)
	result, err := edgeAndLevel(ctx, 1)
	if err != nil {
		return fmt.Errorf("playing the events: %w", err)
	}
	world.Printf("   events: %d, of them lost: %d, told twice: %d\n", changes, result.lost, result.twice)
	world.Printf("   a handler that applies each event as it comes: %3d of %d objects are right\n", result.edgeRight, objects)
	world.Printf("   keys, and a look at how things are now:        %3d of %d, after %d passes\n", result.levelRight, objects, result.levelPasses)
	world.Printf("   then every key once more, as a list brings it: %3d of %d; the handler of events still %d\n",
		result.levelRightAfterList, objects, result.edgeRightAfterList)
	return nil
}

func sum(durations []time.Duration) (total time.Duration) {
	for _, one := range durations {
		total += one
	}
	return total
}
