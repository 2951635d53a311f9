package main

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// take gets an item that must be there.
func take[T comparable](g Gomega, queue workqueue.TypedInterface[T]) T {
	g.Expect(queue.Len()).To(BeNumerically(">", 0), "Get would wait for ever")
	item, shutdown := queue.Get()
	g.Expect(shutdown).To(BeFalse())
	return item
}

func TestAKeyThatWaitsIsThereOnce(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	waiting, passes := coalesce(100)
	g.Expect(waiting).To(Equal(1))
	g.Expect(passes).To(Equal(1))
}

func TestAKeyAddedWhileItIsWorkedOnIsWorkedOnOnceMore(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 100} {
		g := NewWithT(t)
		again := min(n, 1)
		g.Expect(addWhileWorkedOn(n)).To(Equal(whileWorkedOn{waitingBefore: 0, waitingAfter: again, passes: 1 + again}), "%d Adds", n)
	}
}

func TestNoKeyIsEverWorkedOnTwiceAtOnce(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	crowd := stress(8, 3, 5000)
	g.Expect(crowd.perKey).To(Equal(1))
	g.Expect(crowd.overall).To(BeNumerically("<=", 3), "no more workers are busy than there are keys")
	g.Expect(crowd.allSeen).To(BeTrue(), "the last pass of a key began after its last Add")
}

func TestDifferentKeysAreWorkedOnAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		loop := &loop{queue: newQueue(), reconcile: pass(func(cache.ObjectName) error {
			time.Sleep(time.Minute)
			return nil
		})}
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			loop.queue.Add(cache.NewObjectName("shop", name))
		}
		loop.queue.ShutDown()
		start := time.Now()
		loop.run(t.Context(), 3)
		g.Expect(time.Since(start)).To(Equal(2*time.Minute), "three, then two")
	})
}

func TestFirstComeFirstServed(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	queue := workqueue.NewTyped[string]()
	for _, item := range []string{"a", "b", "a", "c"} {
		queue.Add(item)
	}
	first := take(g, queue)
	g.Expect(first).To(Equal("a"), "an Add of what waits does not move it")
	queue.Add("a")
	g.Expect(take(g, queue)).To(Equal("b"), "what is added while it is worked on waits for its Done")
	queue.Done("a")
	g.Expect(take(g, queue)).To(Equal("c"))
	g.Expect(take(g, queue)).To(Equal("a"), "and then queues at the end")
}

func TestGetWaitsForAnAdd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		queue := workqueue.NewTyped[string]()
		got := make(chan string, 1)
		go func() {
			item, _ := queue.Get()
			got <- item
		}()
		synctest.Wait()
		g.Expect(got).NotTo(Receive())
		queue.Add("a")
		synctest.Wait()
		g.Expect(got).To(Receive(Equal("a")))
	})
}

// The order is not a promise of the queue but of what is underneath, which may be another: Touch tells it
// that something which waits was added again.
type newestFirst []string

func (q *newestFirst) Push(item string) { *q = append(*q, item) }
func (q *newestFirst) Len() int         { return len(*q) }
func (q *newestFirst) Pop() string {
	item := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return item
}
func (q *newestFirst) Touch(item string) {
	*q = append(slices.DeleteFunc(*q, func(other string) bool { return other == item }), item)
}

func TestTheOrderCanBeAnother(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Queue: &newestFirst{}})
	for _, item := range []string{"a", "b", "c", "a"} {
		queue.Add(item)
	}
	g.Expect([]string{take(g, queue), take(g, queue), take(g, queue)}).To(Equal([]string{"a", "c", "b"}))
}

func TestAPointerIsNoKey(t *testing.T) {
	t.Parallel()
	NewWithT(t).Expect(pointersAsKeys()).To(Equal(2))
}

func TestDoneSaidTwiceBreaksThePromise(t *testing.T) {
	t.Parallel()
	NewWithT(t).Expect(doneTwice()).To(Equal(2))
}

// pass is a reconcile that needs no context.
func pass(work func(cache.ObjectName) error) func(context.Context, cache.ObjectName) error {
	return func(_ context.Context, key cache.ObjectName) error { return work(key) }
}
