package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/cache"
)

func TestWhatBecomesOfKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(runLoop(t.Context())).To(Equal([]string{
			"shop/healthy   passes: 1, given up: false failures remembered: 0",
			"shop/flaky     passes: 4, given up: false failures remembered: 0",
			"shop/hopeless  passes: 6, given up: true  failures remembered: 0",
		}))
	})
}

// A cap ends one series of failures, not the key.
func TestAKeyThatWasGivenUpStartsFromZeroWithTheNextEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		passes, broken := 0, true
		givenUp := make(chan error, 1)
		done := make(chan struct{})
		loop := &loop{queue: newQueue(), maxRetries: 2}
		loop.reconcile = pass(func(cache.ObjectName) error {
			passes++
			if broken {
				return errNotYet
			}
			close(done)
			return nil
		})
		loop.giveUp = func(_ cache.ObjectName, err error) { givenUp <- err }
		go loop.run(t.Context(), 1)
		defer loop.queue.ShutDown()

		for range 2 {
			passes = 0
			loop.queue.Add(key)
			g.Expect(<-givenUp).To(MatchError(errNotYet))
			g.Expect(passes).To(Equal(3), "the first and two retries")
			synctest.Wait()
		}
		broken = false
		loop.queue.Add(key)
		<-done
	})
}

func TestAKeyThatFailsDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		good := 0
		loop := &loop{queue: newQueue(), maxRetries: 1000}
		loop.reconcile = pass(func(key cache.ObjectName) error {
			if key.Name == "bad" {
				return errNotYet
			}
			good++
			return nil
		})
		go loop.run(t.Context(), 1)
		defer loop.queue.ShutDown()
		loop.queue.Add(cache.NewObjectName("shop", "bad"))
		for i := range 100 {
			loop.queue.Add(cache.NewObjectName("shop", fmt.Sprintf("good-%d", i)))
		}
		synctest.Wait()
		g.Expect(good).To(Equal(100), "with one worker, and before any back-off was over")
	})
}

// At the end the passes under way end, and nothing new begins.
func TestTheLoopEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		ctx, cancel := context.WithCancel(t.Context())
		var lock sync.Mutex
		begun, ended := 0, 0
		loop := &loop{queue: newQueue()}
		loop.reconcile = pass(func(cache.ObjectName) error {
			lock.Lock()
			begun++
			lock.Unlock()
			time.Sleep(time.Minute)
			lock.Lock()
			ended++
			lock.Unlock()
			return nil
		})
		for i := range 10 {
			loop.queue.Add(cache.NewObjectName("shop", fmt.Sprintf("o-%d", i)))
		}
		returned := make(chan struct{})
		go func() {
			defer close(returned)
			loop.run(ctx, 3)
		}()
		time.Sleep(30 * time.Second)
		start := time.Now()
		cancel()
		<-returned
		g.Expect(time.Since(start)).To(Equal(30*time.Second), "run waits for the passes under way")
		g.Expect(begun).To(Equal(3))
		g.Expect(ended).To(Equal(3))
		g.Expect(loop.queue.Len()).To(BeZero(), "what waited was let go")
	})
}

// Done is deferred. A worker whose pass panics, in a program that survives it, does not lose the key.
func TestDoneIsSaidAlsoAfterAPanic(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	loop := &loop{queue: newQueue()}
	defer loop.queue.ShutDown()
	loop.reconcile = pass(func(cache.ObjectName) error { panic("a mistake") })
	loop.queue.Add(key)
	g.Expect(func() { loop.next(t.Context()) }).To(PanicWith("a mistake"))
	loop.queue.Add(key)
	g.Expect(take(g, loop.queue)).To(Equal(key))
}

// A pass is told a key and no event: what it does follows from how things are. So it does not matter which
// events were lost, told twice or in another order, as long as something brings the key once more.
func TestEventsLostOrToldTwiceLeadToTheSameEnd(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		g := NewWithT(t)
		result, err := edgeAndLevel(t.Context(), seed)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.lost).To(BeNumerically(">", 0))
		g.Expect(result.twice).To(BeNumerically(">", 0))

		g.Expect(result.levelRight).To(Equal(result.levelPasses), "seed %d: every key that was told at all is right, in one pass", seed)
		g.Expect(result.levelRightAfterList).To(Equal(objects), "seed %d: and the others are after the list", seed)
		g.Expect(result.edgeRight).To(BeNumerically("<", objects/2), "seed %d: what believes the events is not", seed)
		g.Expect(result.edgeRightAfterList).To(Equal(result.edgeRight), "seed %d: and nothing mends it", seed)
	}
}

func TestWithoutFaultsBothAreRight(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	wanted, told := numbers{}, []event{{key, 2}, {cache.NewObjectName("shop", "db"), 5}, {key, -1}}
	edge, level := numbers{}, numbers{}
	for _, event := range told {
		wanted.apply(event)
		edge.apply(event)
	}
	passes, err := converge(t.Context(), wanted, level, []cache.ObjectName{told[0].key, told[1].key, told[2].key})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(passes).To(Equal(2), "three events, two keys")
	g.Expect(level).To(Equal(wanted))
	g.Expect(edge).To(Equal(wanted))
}

func TestTheLessonEndsWhenItIsInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := runLoop(ctx)
		g.Expect(errors.Is(err, context.Canceled)).To(BeTrue())
	})
}
