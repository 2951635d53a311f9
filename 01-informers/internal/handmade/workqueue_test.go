package handmade

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// recordedQueue is a work queue whose events are recorded, as "type item" or "type item>into".
type recordedQueue struct {
	WorkQueue
	probe *Probe
	seen  *recorder
}

func newRecordedQueue() *recordedQueue {
	seen := &recorder{}
	probe := &Probe{Observe: seen.observe}
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](time.Second, time.Minute)
	return &recordedQueue{WorkQueue: NewWorkQueue("recorded", limiter, probe), probe: probe, seen: seen}
}

var fruit = cache.ObjectName{Name: "fruit"}

// handle adds the key as a handler does that is called for an item.
func (q *recordedQueue) handle(item string) {
	q.probe.handling.Store(&Event{Key: fruit, Item: item})
	q.Add(fruit)
	q.probe.handling.Store(nil)
}

// get gets the key as a worker does.
func (q *recordedQueue) get(t *testing.T) {
	t.Helper()
	key, shutdown := q.Get()
	if shutdown || key != fruit {
		t.Fatalf("got %v, %v", key, shutdown)
	}
	q.probe.begin(key)
}

// finish ends the work on the key as a worker does.
func (q *recordedQueue) finish(err error) {
	q.probe.end(fruit, err)
	if err != nil {
		q.AddRateLimited(fruit)
	} else {
		q.Forget(fruit)
	}
	q.Done(fruit)
}

func (q *recordedQueue) reported() []string {
	var reported []string
	for _, event := range q.seen.all() {
		one := event.Type + " " + event.Item
		if event.Into != "" {
			one += ">" + event.Into
		}
		reported = append(reported, one)
	}
	q.seen.forget()
	return reported
}

// elapse waits in a bubble of synctest.
func elapse(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestWaitingKeysAreMerged(t *testing.T) {
	g := NewWithT(t)
	q := newRecordedQueue()
	defer q.ShutDown()
	for _, item := range []string{"u@1", "u@2", "u@2", "u@1"} { // the same version again, after a relist
		q.handle(item)
	}
	q.get(t)
	q.finish(nil)
	g.Expect(q.reported()).To(Equal([]string{
		"added u@1", "merged u@2>u@1", "merged u@2>u@1", "merged u@1", "started u@1", "done u@1",
	}), "an item is not merged into itself")
	g.Expect(q.Len()).To(BeZero())
}

func TestDirtyKeyWaitsForItsWorker(t *testing.T) {
	g := NewWithT(t)
	q := newRecordedQueue()
	defer q.ShutDown()
	q.handle("u@1")
	q.get(t)
	q.handle("u@2")
	q.handle("u@3")
	g.Expect(q.Len()).To(BeZero(), "no other worker gets it")
	q.finish(nil)
	q.get(t)
	q.finish(nil)
	g.Expect(q.reported()).To(Equal([]string{
		"added u@1", "started u@1", "dirty u@2", "merged u@3>u@2", "done u@1", "readded u@2", "started u@2", "done u@2",
	}))
	g.Expect(q.probe.items.queued).To(BeEmpty())
	g.Expect(q.probe.items.marked).To(BeEmpty())
}

func TestChangesDuringBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		q := newRecordedQueue()
		defer q.ShutDown()
		q.handle("u@1")
		q.get(t)
		q.finish(fmt.Errorf("no")) // a backoff of 1 s
		g.Expect(q.reported()).To(Equal([]string{"added u@1", "started u@1", "failed u@1"}))

		q.handle("u@2") // does not wait for it
		q.get(t)
		q.finish(fmt.Errorf("no")) // a backoff of 2 s, but the first one queues the key
		g.Expect(q.reported()).To(Equal([]string{"added u@2", "started u@2", "failed u@2>u@1"}))
		elapse(1100 * time.Millisecond)
		g.Expect(q.reported()).To(Equal([]string{"returned u@1"}))

		q.get(t)
		q.finish(fmt.Errorf("no")) // a backoff of 4 s
		q.handle("u@3")
		elapse(5 * time.Second)
		g.Expect(q.reported()).To(Equal([]string{"started u@1", "failed u@1", "added u@3", "merged u@1>u@3"}))

		q.get(t)
		q.finish(nil)
		g.Expect(q.NumRequeues(fruit)).To(BeZero())
		for _, left := range []map[cache.ObjectName]string{q.probe.items.queued, q.probe.items.marked, q.probe.items.backoff} {
			g.Expect(left).To(BeEmpty())
		}
		g.Expect(q.probe.items.failed).To(BeEmpty())
	})
}

func TestBackoffEndsDuringWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		q := newRecordedQueue()
		defer q.ShutDown()
		q.handle("u@1")
		q.get(t)
		q.finish(fmt.Errorf("no"))
		q.handle("u@2")
		q.get(t)
		elapse(2 * time.Second)
		q.finish(nil)
		q.get(t)
		q.finish(nil)
		g.Expect(q.reported()).To(Equal([]string{
			"added u@1", "started u@1", "failed u@1", "added u@2", "started u@2", "dirty u@1", "done u@2",
			"readded u@1", "started u@1", "done u@1",
		}))
	})
}

func TestAddAfterShutDown(t *testing.T) {
	g := NewWithT(t)
	q := newRecordedQueue()
	q.ShutDown()
	q.handle("u@1")
	g.Expect(q.reported()).To(BeEmpty())
	_, shutdown := q.Get()
	g.Expect(shutdown).To(BeTrue())
}
