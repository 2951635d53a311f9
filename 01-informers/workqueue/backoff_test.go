package main

import (
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
)

func TestParametersOfTheDefaultLimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(delays(workqueue.DefaultTypedControllerRateLimiter[string](), 20)).To(
			Equal(delays(newLimiter[string](), 20)),
			"one key never empties the bucket")

		limiter := workqueue.DefaultTypedControllerRateLimiter[int]()
		bucket := bucketDelays(200)
		for i := range 200 {
			g.Expect(limiter.When(i)).To(BeNumerically("~", max(baseDelay, bucket[i]), time.Microsecond), "the first failure of key %d", i)
		}
	})
}

func TestBackOffIsPerKeyAndForgetResetsIt(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	limiter := newLimiter[string]()
	delays(limiter, 4)
	g.Expect(limiter.NumRequeues("item")).To(Equal(4))
	g.Expect(limiter.When("another")).To(Equal(5 * time.Millisecond))
	limiter.Forget("item")
	g.Expect(limiter.NumRequeues("item")).To(BeZero())
	g.Expect(limiter.When("item")).To(Equal(5 * time.Millisecond))
	g.Expect(limiter.NumRequeues("another")).To(Equal(1))
}

// Forget does not return the token. A key whose own delay is longer takes a token too.
func TestTheBucketIsForAllKeysTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		bucket := &workqueue.TypedBucketRateLimiter[string]{Limiter: rate.NewLimiter(bucketRate, 3)}
		limiter := workqueue.NewTypedMaxOfRateLimiter(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Hour, time.Hour), bucket)
		g.Expect(limiter.When("slow")).To(Equal(time.Hour))
		limiter.Forget("slow")
		for _, want := range []time.Duration{0, 0, 100 * time.Millisecond, 200 * time.Millisecond} {
			g.Expect(bucket.When("any")).To(Equal(want))
			bucket.Forget("any")
		}
		g.Expect(bucket.NumRequeues("any")).To(BeZero())
		time.Sleep(time.Second)
		g.Expect(bucket.When("any")).To(BeZero(), "after a second there are tokens again")
	})
}

func TestOtherLimiters(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	tests := map[string]struct {
		limiter workqueue.TypedRateLimiter[string]
		want    []time.Duration
	}{
		"fast three times, then slow": {
			workqueue.NewTypedItemFastSlowRateLimiter[string](ms, time.Minute, 3),
			[]time.Duration{ms, ms, ms, time.Minute, time.Minute},
		},
		"exponential up to a maximum": {
			workqueue.NewTypedWithMaxWaitRateLimiter(workqueue.NewTypedItemExponentialFailureRateLimiter[string](ms, maxDelay), 4*ms),
			[]time.Duration{ms, 2 * ms, 4 * ms, 4 * ms, 4 * ms},
		},
		"exponential from 1 ms, without a bucket": {
			workqueue.DefaultTypedItemBasedRateLimiter[string](),
			[]time.Duration{ms, 2 * ms, 4 * ms, 8 * ms, 16 * ms},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			NewWithT(t).Expect(delays(test.limiter, 5)).To(Equal(test.want))
		})
	}
}

func TestForgetDoesNotCancelADelayedAdd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		queue := newQueue()
		defer queue.ShutDown()
		queue.AddRateLimited(key)
		queue.Forget(key)
		time.Sleep(time.Second)
		synctest.Wait()
		g.Expect(take(g, queue)).To(Equal(key))
	})
}

// A delayed key is in neither set of the queue. Once the delay has expired during the processing, the key is dirty.
func TestAddRateLimitedBeforeDoneLosesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		queue := newQueue()
		defer queue.ShutDown()
		queue.Add(key)
		item := take(g, queue)
		queue.AddRateLimited(item)
		time.Sleep(time.Minute) // The delay expires.
		synctest.Wait()
		g.Expect(queue.Len()).To(BeZero())
		queue.Done(item)
		g.Expect(take(g, queue)).To(Equal(key))
	})
}
