package main

import (
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/time/rate"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

func TestTheDefaultLimiterIsWhatThisLessonSays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(delays(workqueue.DefaultTypedControllerRateLimiter[string](), 20)).To(
			Equal(delays(workqueue.NewTypedItemExponentialFailureRateLimiter[string](baseDelay, maxDelay), 20)),
			"one key alone never finds the bucket empty")

		limiter := workqueue.DefaultTypedControllerRateLimiter[int]()
		bucket := bucketDelays(200)
		for i := range 200 {
			g.Expect(limiter.When(i)).To(BeNumerically("~", max(baseDelay, bucket[i]), time.Microsecond), "the first failure of key %d", i)
		}
	})
}

func TestBackOffDoublesFromFiveMillisecondsToAThousandSeconds(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	waits := delays(workqueue.NewTypedItemExponentialFailureRateLimiter[string](baseDelay, maxDelay), 100)
	for n, wait := range waits[:18] {
		g.Expect(wait).To(Equal(5*time.Millisecond<<n), "failure %d", n)
	}
	g.Expect(waits[18:]).To(HaveEach(1000 * time.Second))
}

func TestBackOffIsPerKeyAndForgetEndsIt(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](baseDelay, maxDelay)
	delays(limiter, 4)
	g.Expect(limiter.NumRequeues("item")).To(Equal(4))
	g.Expect(limiter.When("another")).To(Equal(5 * time.Millisecond))
	limiter.Forget("item")
	g.Expect(limiter.NumRequeues("item")).To(BeZero())
	g.Expect(limiter.When("item")).To(Equal(5 * time.Millisecond))
	g.Expect(limiter.NumRequeues("another")).To(Equal(1))
}

// The bucket knows no keys: Forget gives no token back, and a key that waits longer on its own account
// takes a token all the same.
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
		g.Expect(bucket.When("any")).To(BeZero(), "a second later there are tokens again")
	})
}

// Three others come with the library.
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
		"never longer than": {
			workqueue.NewTypedWithMaxWaitRateLimiter(workqueue.NewTypedItemExponentialFailureRateLimiter[string](ms, maxDelay), 4*ms),
			[]time.Duration{ms, 2 * ms, 4 * ms, 4 * ms, 4 * ms},
		},
		"per item only, from 1 ms": {
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

// As in Kubernetes' own Deployment controller: 15 retries. With the default limiter a key is given up after
// not quite three minutes.
func TestFifteenRetriesTakeLessThanThreeMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		start, passes := time.Now(), 0
		var given time.Duration
		loop := &loop{
			queue: workqueue.NewTypedRateLimitingQueueWithConfig(
				workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName](),
				workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "foo"}),
			reconcile:  pass(func(cache.ObjectName) error { passes++; return errNotYet }),
			maxRetries: 15,
		}
		loop.giveUp = func(_ cache.ObjectName, err error) {
			g.Expect(err).To(MatchError(errNotYet))
			given = time.Since(start)
			loop.queue.ShutDown()
		}
		loop.queue.Add(key)
		loop.run(t.Context(), 1)
		g.Expect(passes).To(Equal(16))
		g.Expect(given).To(Equal(163835 * time.Millisecond))
	})
}

func TestForgetAndDone(t *testing.T) {
	t.Parallel()
	tests := map[habit]consequences{
		{forget: true, done: true}: {failures: 0, nextDelay: 5 * time.Millisecond, comesBack: true, drains: true},
		{done: true}:               {failures: 4, nextDelay: 80 * time.Millisecond, comesBack: true, drains: true},
		{forget: true}:             {failures: 0, nextDelay: 5 * time.Millisecond, comesBack: false, drains: false},
		{}:                         {failures: 4, nextDelay: 80 * time.Millisecond, comesBack: false, drains: false},
	}
	for habit, want := range tests {
		t.Run(habit.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				NewWithT(t).Expect(consequencesOf(habit)).To(Equal(want))
			})
		})
	}
}

// Forget is no cancel.
func TestForgetLeavesAKeyThatWaitsForItsTime(t *testing.T) {
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

func TestAddRateLimitedIsForFailuresOnly(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	failures, next := handlerAddsRateLimited(5)
	g.Expect(failures).To(Equal(5))
	g.Expect(next).To(Equal(160 * time.Millisecond))
}

func TestForgetBeforeAddRateLimitedIsAHotLoop(t *testing.T) {
	t.Parallel()
	NewWithT(t).Expect(forgetThenFail(100)).To(HaveEach(5 * time.Millisecond))
}

// AddRateLimited before Done is right: what waits for its time is not dirty, and what is dirty waits for Done.
func TestAddRateLimitedBeforeDoneLosesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		queue := newQueue()
		defer queue.ShutDown()
		queue.Add(key)
		item := take(g, queue)
		queue.AddRateLimited(item)
		time.Sleep(time.Minute) // its time comes while it is still worked on
		synctest.Wait()
		g.Expect(queue.Len()).To(BeZero())
		queue.Done(item)
		g.Expect(take(g, queue)).To(Equal(key))
	})
}
