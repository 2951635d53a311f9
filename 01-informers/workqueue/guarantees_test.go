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

// take gets an item, and fails if none waits.
func take[T comparable](g Gomega, queue workqueue.TypedInterface[T]) T {
	g.Expect(queue.Len()).To(BeNumerically(">", 0), "Get would block")
	item, shutdown := queue.Get()
	g.Expect(shutdown).To(BeFalse())
	return item
}

func TestDifferentKeysAreProcessedAtTheSameTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		loop := &loop{queue: newQueue(), reconcile: withoutContext(func(cache.ObjectName) error {
			time.Sleep(time.Minute)
			return nil
		})}
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			loop.queue.Add(cache.NewObjectName("shop", name))
		}
		loop.queue.ShutDown()
		start := time.Now()
		loop.run(t.Context(), 3)
		g.Expect(time.Since(start)).To(Equal(2*time.Minute), "three keys, then two")
	})
}

func TestKeysAreProcessedInTheOrderOfTheFirstAdd(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	queue := workqueue.NewTyped[string]()
	for _, item := range []string{"a", "b", "a", "c"} {
		queue.Add(item)
	}
	first := take(g, queue)
	g.Expect(first).To(Equal("a"), "another Add does not move a waiting key")
	queue.Add("a")
	g.Expect(take(g, queue)).To(Equal("b"), "a key being processed waits for its Done")
	queue.Done("a")
	g.Expect(take(g, queue)).To(Equal("c"))
	g.Expect(take(g, queue)).To(Equal("a"), "and is then the last in the queue")
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

// newestFirst implements workqueue.Queue, which decides the order. Touch is called for an Add of a waiting item.
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

func TestAQueueCanHaveAnotherOrder(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Queue: &newestFirst{}})
	for _, item := range []string{"a", "b", "c", "a"} {
		queue.Add(item)
	}
	g.Expect([]string{take(g, queue), take(g, queue), take(g, queue)}).To(Equal([]string{"a", "c", "b"}))
}

// withoutContext makes a reconcile function of one without a context.
func withoutContext(reconcile func(cache.ObjectName) error) func(context.Context, cache.ObjectName) error {
	return func(_ context.Context, key cache.ObjectName) error { return reconcile(key) }
}
