package handmade

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// line is a work queue whose events are written down, as "type item" or "type item>into".
type line struct {
	WorkQueue
	probe *Probe
	seen  *recorder
}

func newLine() *line {
	seen := &recorder{}
	probe := &Probe{Observe: seen.observe, Gate: &Gate{}}
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](time.Second, time.Minute)
	return &line{WorkQueue: NewWorkQueue("line", limiter, clock.RealClock{}, probe), probe: probe, seen: seen}
}

var fruit = cache.ObjectName{Name: "fruit"}

// handle adds the key as a handler does that is told of an item.
func (l *line) handle(item string) {
	l.probe.handling.Store(&Event{Key: fruit, Item: item})
	l.Add(fruit)
	l.probe.handling.Store(nil)
}

// take gets the key as a worker does.
func (l *line) take(t *testing.T) {
	t.Helper()
	key, shutdown := l.Get()
	if shutdown || key != fruit {
		t.Fatalf("got %v, %v", key, shutdown)
	}
	l.probe.begin(key)
}

// finish gives the key back as a worker does.
func (l *line) finish(err error) {
	l.probe.end(fruit, err)
	if err != nil {
		l.AddRateLimited(fruit)
	} else {
		l.Forget(fruit)
	}
	l.Done(fruit)
}

func (l *line) told() []string {
	var told []string
	for _, event := range l.seen.all() {
		one := event.Type + " " + event.Item
		if event.Into != "" {
			one += ">" + event.Into
		}
		told = append(told, one)
	}
	l.seen.forget()
	return told
}

// elapse lets time go by, in a bubble of synctest.
func elapse(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestKeysThatWaitAreMerged(t *testing.T) {
	g := NewWithT(t)
	l := newLine()
	defer l.ShutDown()
	l.handle("u@1")
	l.handle("u@2")
	l.handle("u@2") // the same version again, after a relist
	l.take(t)
	l.finish(nil)
	g.Expect(l.told()).To(Equal([]string{"added u@1", "merged u@2>u@1", "merged u@2>u@1", "started u@1", "done u@1"}))
	g.Expect(l.Len()).To(BeZero())
}

func TestTheSameItemIsNotMergedIntoItself(t *testing.T) {
	g := NewWithT(t)
	l := newLine()
	defer l.ShutDown()
	l.handle("u@1")
	l.handle("u@1")
	g.Expect(l.told()).To(Equal([]string{"added u@1", "merged u@1"}))
}

func TestAKeyInHandWaitsUntilTheWorkerIsDone(t *testing.T) {
	g := NewWithT(t)
	l := newLine()
	defer l.ShutDown()
	l.handle("u@1")
	l.take(t)
	l.handle("u@2")
	l.handle("u@3")
	g.Expect(l.Len()).To(BeZero(), "nobody else gets it now")
	l.finish(nil)
	l.take(t)
	l.finish(nil)
	g.Expect(l.told()).To(Equal([]string{
		"added u@1", "started u@1", "dirty u@2", "merged u@3>u@2", "done u@1", "readded u@2", "started u@2", "done u@2",
	}))
	g.Expect(l.probe.items.Load().queued).To(BeEmpty())
	g.Expect(l.probe.items.Load().behind).To(BeEmpty())
}

func TestBackOffAndWhatComesMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		l := newLine()
		defer l.ShutDown()
		l.handle("u@1")
		l.take(t)
		l.finish(fmt.Errorf("no")) // kept back for 1 s
		g.Expect(l.told()).To(Equal([]string{"added u@1", "started u@1", "failed u@1"}))

		l.handle("u@2") // does not wait for that
		l.take(t)
		l.finish(fmt.Errorf("no")) // kept back for 2 s, but it comes back with the first
		g.Expect(l.told()).To(Equal([]string{"added u@2", "started u@2", "failed u@2>u@1"}))
		elapse(1100 * time.Millisecond)
		g.Expect(l.told()).To(Equal([]string{"returned u@1"}))

		l.take(t)
		l.finish(fmt.Errorf("no")) // 4 s
		l.handle("u@3")
		elapse(5 * time.Second)
		g.Expect(l.told()).To(Equal([]string{"started u@1", "failed u@1", "added u@3", "merged u@1>u@3"}))

		l.take(t)
		l.finish(nil)
		g.Expect(l.NumRequeues(fruit)).To(BeZero())
		for _, left := range []map[cache.ObjectName]string{l.probe.items.Load().queued, l.probe.items.Load().behind, l.probe.items.Load().back} {
			g.Expect(left).To(BeEmpty())
		}
		g.Expect(l.probe.items.Load().failed).To(BeEmpty())
	})
}

func TestABackOffThatEndsWhileAWorkerHasTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		l := newLine()
		defer l.ShutDown()
		l.handle("u@1")
		l.take(t)
		l.finish(fmt.Errorf("no"))
		l.handle("u@2")
		l.take(t)
		elapse(2 * time.Second)
		l.finish(nil)
		l.take(t)
		l.finish(nil)
		g.Expect(l.told()).To(Equal([]string{
			"added u@1", "started u@1", "failed u@1", "added u@2", "started u@2", "dirty u@1", "done u@2",
			"readded u@1", "started u@1", "done u@1",
		}))
	})
}

func TestNothingIsAddedAfterShutDown(t *testing.T) {
	g := NewWithT(t)
	l := newLine()
	l.ShutDown()
	l.handle("u@1")
	g.Expect(l.told()).To(BeEmpty())
	_, shutdown := l.Get()
	g.Expect(shutdown).To(BeTrue())
}
