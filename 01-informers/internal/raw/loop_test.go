package raw

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/foo"
)

// runningLoop is a loop at work, in a synctest bubble.
type runningLoop struct {
	*WithT
	queue queue
	begun time.Time
	stop  context.CancelFunc

	// ended is closed when run has returned.
	ended chan struct{}

	mu         sync.Mutex
	reconciled []string
}

// start runs a loop with one worker until the end of the test. reconcile gets the number of earlier reconciliations of the key.
func start(t *testing.T, reconcile func(ctx context.Context, key cache.ObjectName, before int) (time.Duration, error)) *runningLoop {
	t.Helper()
	l := &runningLoop{WithT: NewWithT(t), queue: newQueue(), begun: time.Now(), ended: make(chan struct{})}
	var ctx context.Context
	ctx, l.stop = context.WithCancel(t.Context())
	work := &loop{queue: l.queue, reconcile: func(ctx context.Context, key cache.ObjectName) (time.Duration, error) {
		before := 0
		for _, name := range l.done() {
			if name == key.Name {
				before++
			}
		}
		l.mu.Lock()
		l.reconciled = append(l.reconciled, key.Name)
		l.mu.Unlock()
		return reconcile(ctx, key, before)
	}}
	go func() {
		work.run(ctx, context.WithoutCancel(ctx), 1)
		close(l.ended)
	}()
	t.Cleanup(func() {
		l.stop()
		<-l.ended
	})
	return l
}

func (l *runningLoop) add(names ...string) {
	for _, name := range names {
		l.queue.Add(cache.NewObjectName("space", name))
	}
	synctest.Wait()
}

func (l *runningLoop) done() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.reconciled)
}

func TestFailedReconciliationIsTriedAgainWithBackOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var times []time.Duration
		var l *runningLoop
		l = start(t, func(_ context.Context, key cache.ObjectName, before int) (time.Duration, error) {
			times = append(times, time.Since(l.begun))
			if before < 4 {
				return 0, errors.New("no connection")
			}
			return 0, nil
		})
		l.add("one")
		pause(time.Minute)
		synctest.Wait()
		first := foo.FirstRetry
		l.Expect(times).To(Equal([]time.Duration{0, first, 3 * first, 7 * first, 15 * first}))
		l.Expect(l.queue.NumRequeues(cache.NewObjectName("space", "one"))).To(BeZero(), "after success the failures are forgotten")
	})
}

func TestPanicDoesNotStopTheWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := start(t, func(_ context.Context, key cache.ObjectName, before int) (time.Duration, error) {
			if key.Name == "bad" && before == 0 {
				panic("a nil pointer, say")
			}
			return 0, nil
		})
		l.add("bad", "good")
		pause(time.Second)
		synctest.Wait()
		l.Expect(l.done()).To(Equal([]string{"bad", "good", "bad"}))
	})
}

func TestHangingReconciliationEndsAfterItsTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := start(t, func(ctx context.Context, key cache.ObjectName, before int) (time.Duration, error) {
			if before == 0 && key.Name == "hanging" {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return 0, nil
		})
		l.add("hanging", "waiting")
		pause(reconcileTimeout - 1)
		l.Expect(l.done()).To(Equal([]string{"hanging"}))
		pause(time.Second)
		synctest.Wait()
		l.Expect(l.done()).To(Equal([]string{"hanging", "waiting", "hanging"}))
	})
}
