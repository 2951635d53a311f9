package main

import (
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestTheEarlierOfTwoTimesCounts(t *testing.T) {
	t.Parallel()
	for _, order := range [][]time.Duration{{time.Minute, time.Hour}, {time.Hour, time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			queue := newDelaying()
			defer queue.ShutDown()
			for _, delay := range order {
				queue.AddAfter("item", delay)
			}
			start := time.Now()
			_, shutdown := queue.Get()
			g.Expect(shutdown).To(BeFalse())
			g.Expect(time.Since(start)).To(Equal(time.Minute))
		})
	}
}

// Without synctest, a test passes a fake clock. It calls Step once the queue waits on the clock.
func TestQueueWithAFakeClock(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	fake := clocktesting.NewFakeClock(time.Unix(0, 0))
	queue := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Clock: fake})
	defer queue.ShutDown()
	queue.AddAfter("item", time.Hour)
	g.Eventually(fake.Waiters).Should(Equal(2), "the heartbeat of the queue, and the item")
	fake.Step(time.Hour)
	g.Eventually(queue.Len).Should(Equal(1))
}

func TestShutdownLosesDelayedItems(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(workqueue.TypedDelayingInterface[string]){
		"ShutDown":          workqueue.TypedDelayingInterface[string].ShutDown,
		"ShutDownWithDrain": workqueue.TypedDelayingInterface[string].ShutDownWithDrain,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				queue := newDelaying()
				defer queue.ShutDown()
				queue.AddAfter("soon", time.Second)
				synctest.Wait()
				end(queue)
				queue.AddAfter("later", 0)
				time.Sleep(time.Hour)
				_, shutdown := queue.Get()
				g.Expect(shutdown).To(BeTrue())
			})
		})
	}
}

// manualClock is a clock whose tickers tick when the test sends a time.
type manualClock struct {
	clock.RealClock
	tick chan time.Time
}

// NewTicker implements clock.WithTicker.
func (c manualClock) NewTicker(time.Duration) clock.Ticker { return c }

// C implements clock.Ticker.
func (c manualClock) C() <-chan time.Time { return c.tick }

// Stop implements clock.Ticker.
func (c manualClock) Stop() {}

// isWaitedFor sends a tick. It reports whether the goroutine of AddAfter, which has a heartbeat of 10 s, received it.
func (c manualClock) isWaitedFor() bool {
	synctest.Wait()
	select {
	case c.tick <- time.Now():
		return true
	default:
		return false
	}
}

func TestShutDownWithDrainEndsTheGoroutineOfAddAfterLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		drained := manualClock{tick: make(chan time.Time)}
		queue := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Clock: drained})
		synctest.Wait()
		queue.ShutDownWithDrain()
		g.Expect(drained.isWaitedFor()).To(BeTrue(), "the goroutine still runs")
		g.Expect(drained.isWaitedFor()).To(BeFalse(), "it ends with the next heartbeat")

		ended := manualClock{tick: make(chan time.Time)}
		queue = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Clock: ended})
		g.Expect(ended.isWaitedFor()).To(BeTrue())
		queue.ShutDown()
		g.Expect(ended.isWaitedFor()).To(BeFalse())
	})
}

func TestADirtyKeyIsStillProcessedAfterShutDown(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	queue := workqueue.NewTyped[string]()
	queue.Add("a")
	item := take(g, queue)
	queue.Add("a")
	queue.ShutDown()
	queue.Done(item)
	g.Expect(drain(queue)).To(Equal(1))
}

func TestShutDownEndsADrainThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		queue := workqueue.NewTyped[string]()
		queue.Add("a")
		take(g, queue) // without Done
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			queue.ShutDownWithDrain()
		}()
		synctest.Wait()
		g.Expect(isClosed(drained)).To(BeFalse())
		queue.ShutDown()
		synctest.Wait()
		g.Expect(isClosed(drained)).To(BeTrue())
	})
}

func TestShutDownEndsGetForAllWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		queue := workqueue.NewTyped[string]()
		ended := make(chan bool, 8)
		for range 8 {
			go func() {
				_, shutdown := queue.Get()
				ended <- shutdown
			}()
		}
		synctest.Wait()
		queue.ShutDown()
		synctest.Wait()
		g.Expect(ended).To(HaveLen(8))
		for range 8 {
			g.Expect(<-ended).To(BeTrue())
		}
	})
}
