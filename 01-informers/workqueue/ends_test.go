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

func newDelaying() workqueue.TypedDelayingInterface[string] {
	return workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{})
}

func TestAddAfter(t *testing.T) {
	t.Parallel()
	want := [][]string{{"now", "early", "late"}, {"item"}, {"item", "item"}}
	for i, story := range delayStories {
		t.Run(story.says, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				NewWithT(t).Expect(play(story)).To(Equal(want[i]))
			})
		})
	}
}

// Of two times for one item the earlier counts, in whichever order they are said.
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

// Without synctest a test sets the queue's clock itself. Step must come after the queue waits on the clock.
func TestTheClockCanBeATestsOwn(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	fake := clocktesting.NewFakeClock(time.Unix(0, 0))
	queue := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Clock: fake})
	defer queue.ShutDown()
	queue.AddAfter("item", time.Hour)
	g.Eventually(fake.Waiters).Should(Equal(2), "the queue's heartbeat, and the item's time")
	fake.Step(time.Hour)
	g.Eventually(queue.Len).Should(Equal(1))
}

func TestShutdownLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		NewWithT(t).Expect(shutdownLines()).To(Equal([]string{
			"ShutDown:          returns at once; 2 keys wait and are still worked on: 2 passes",
			"ShutDownWithDrain: while a worker has a key it has returned: false",
			"                   after Done it has returned: true",
			"                   where no worker has a key it returns at once, and leaves 2 waiting:",
			"                   so wait for the workers too, not only for the queue",
		}))
	})
}

func TestWhatWaitsForItsTimeIsLostAtTheEnd(t *testing.T) {
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

// heart is a clock whose tickers beat when the test says so.
type heart struct {
	clock.RealClock
	beat chan time.Time
}

// NewTicker implements clock.WithTicker.
func (h heart) NewTicker(time.Duration) clock.Ticker { return h }

// C implements clock.Ticker.
func (h heart) C() <-chan time.Time { return h.beat }

// Stop implements clock.Ticker.
func (h heart) Stop() {}

// The goroutine behind AddAfter waits, among others, for its heartbeat every 10 s. Does it still?
func (h heart) isHeard() bool {
	synctest.Wait()
	select {
	case h.beat <- time.Now():
		return true
	default:
		return false
	}
}

func TestOnlyShutDownEndsTheGoroutineOfAddAfterAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		drained := heart{beat: make(chan time.Time)}
		queue := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Clock: drained})
		synctest.Wait()
		queue.ShutDownWithDrain()
		g.Expect(drained.isHeard()).To(BeTrue(), "it does not know yet")
		g.Expect(drained.isHeard()).To(BeFalse(), "after one more beat it does")

		ended := heart{beat: make(chan time.Time)}
		queue = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Clock: ended})
		g.Expect(ended.isHeard()).To(BeTrue())
		queue.ShutDown()
		g.Expect(ended.isHeard()).To(BeFalse())
	})
}

// Marked before the end is marked.
func TestAKeyAddedWhileItIsWorkedOnIsStillWorkedOnAfterShutDown(t *testing.T) {
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
		take(g, queue) // and no Done
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

func TestEveryWorkerHearsOfTheEnd(t *testing.T) {
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
