package main

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/testserver"
)

// In a bubble the delays of the program take no time.
func TestProgram(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { testserver.ExpectOutput(t, program) })
}

func TestADroppedKeyHasAllRetriesAfterTheNextEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		reconciliations, broken := 0, true
		dropped := make(chan error, 1)
		done := make(chan struct{})
		loop := &loop{queue: newQueue(), maxRetries: 2}
		loop.reconcile = func(context.Context, cache.ObjectName) error {
			reconciliations++
			if broken {
				return errNotYet
			}
			close(done)
			return nil
		}
		loop.dropped = func(_ cache.ObjectName, err error) { dropped <- err }
		go loop.run(t.Context(), 1)
		defer loop.queue.ShutDown()

		for range 2 {
			reconciliations = 0
			loop.queue.Add(key)
			g.Expect(<-dropped).To(MatchError(errNotYet))
			g.Expect(reconciliations).To(Equal(3), "the first and two retries")
			synctest.Wait()
		}
		broken = false
		loop.queue.Add(key)
		<-done
	})
}

func TestAFailingKeyDoesNotDelayTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		good := 0
		loop := &loop{queue: newQueue(), maxRetries: 1000}
		loop.reconcile = func(_ context.Context, key cache.ObjectName) error {
			if key.Name == "bad" {
				return errNotYet
			}
			good++
			return nil
		}
		go loop.run(t.Context(), 1)
		defer loop.queue.ShutDown()
		loop.queue.Add(cache.NewObjectName("shop", "bad"))
		for i := range 100 {
			loop.queue.Add(cache.NewObjectName("shop", fmt.Sprintf("good-%d", i)))
		}
		synctest.Wait()
		g.Expect(good).To(Equal(100), "with one worker, and before the first back-off has expired")
	})
}

func TestTheLoopEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		ctx, cancel := context.WithCancel(t.Context())
		var lock sync.Mutex
		started, ended := 0, 0
		loop := &loop{queue: newQueue()}
		loop.reconcile = func(context.Context, cache.ObjectName) error {
			lock.Lock()
			started++
			lock.Unlock()
			time.Sleep(time.Minute)
			lock.Lock()
			ended++
			lock.Unlock()
			return nil
		}
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
		g.Expect(time.Since(start)).To(Equal(30*time.Second), "run waits for the reconciliations")
		g.Expect(started).To(Equal(3))
		g.Expect(ended).To(Equal(3))
		g.Expect(loop.queue.Len()).To(BeZero(), "the other keys were skipped")
	})
}

func TestDoneIsCalledAfterAPanic(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	loop := &loop{queue: newQueue()}
	defer loop.queue.ShutDown()
	loop.reconcile = func(context.Context, cache.ObjectName) error { panic("a mistake") }
	loop.queue.Add(key)
	g.Expect(func() { loop.next(t.Context()) }).To(PanicWith("a mistake"))
	loop.queue.Add(key)
	g.Expect(loop.queue.Len()).To(Equal(1), "it would be dirty without Done")
}

// A reconciliation reads the state and gets no event. Lost and duplicated events and their order do not matter, if the
// key is added once more.
func TestLevelTriggeredConvergesInSpiteOfFaults(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		g := NewWithT(t)
		result := compare(t.Context(), seed)
		g.Expect(result.lost).To(BeNumerically(">", 0))
		g.Expect(result.duplicated).To(BeNumerically(">", 0))

		g.Expect(result.level).To(Equal(result.reconciliations), "seed %d: one reconciliation for each key that was added", seed)
		g.Expect(result.levelAfterList).To(Equal(objects), "seed %d", seed)
		g.Expect(result.edge).To(BeNumerically("<", objects/2), "seed %d", seed)
	}
}
