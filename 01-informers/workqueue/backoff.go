package main

import (
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// The parameters of workqueue.DefaultTypedControllerRateLimiter (default_rate_limiters.go).
const (
	baseDelay   = 5 * time.Millisecond
	maxDelay    = 1000 * time.Second
	bucketRate  = rate.Limit(10)
	bucketBurst = 100
)

func newLimiter[T comparable]() workqueue.TypedRateLimiter[T] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[T](baseDelay, maxDelay)
}

func newQueueWith(limiter workqueue.TypedRateLimiter[cache.ObjectName]) queue {
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{})
}

func (s steps) backOff() {
	s.Printf("\n3. Rate limiting: the default limiter takes the longer of two delays\n")
	waits := delays(newLimiter[string](), 20)
	s.Printf("   for each key, 5 ms doubled with each failure:  %v\n", waits[:6])
	s.Printf("   at most 1000 s:                                %v\n", waits[16:])
	var sum time.Duration
	for _, wait := range waits[:15] {
		sum += wait
	}
	s.Printf("   15 failures in a row take:                     %v\n", sum)
	burst := bucketDelays(200)
	s.Printf("   for all keys together, 10 a second after 100:  the 100th %v, the 101st %v, the 200th %v\n",
		burst[99], burst[100], burst[199])
}

// delays returns the delays of n failures of one item.
func delays(limiter workqueue.TypedRateLimiter[string], n int) []time.Duration {
	waits := make([]time.Duration, n)
	for i := range waits {
		waits[i] = limiter.When("item")
	}
	return waits
}

// bucketDelays returns the delays of n items that fail at the same moment. It rounds, because time passes between them.
func bucketDelays(n int) []time.Duration {
	limiter := &workqueue.TypedBucketRateLimiter[int]{Limiter: rate.NewLimiter(bucketRate, bucketBurst)}
	waits := make([]time.Duration, n)
	for i := range waits {
		waits[i] = limiter.When(i).Round(100 * time.Millisecond)
	}
	return waits
}

func (s steps) forgetAndDone() {
	s.Printf("\n4. Forget is for the rate limiter, Done is for the queue. A key fails 4 times, then succeeds, and the worker calls:\n")
	for _, calls := range []struct {
		name         string
		forget, done bool
	}{
		{"Forget and Done:", true, true}, {"Done, no Forget:", false, true}, {"Forget, no Done:", true, false}, {"neither:", false, false},
	} {
		limiter := newLimiter[cache.ObjectName]()
		queue := newQueueWith(limiter)
		for range 4 {
			limiter.When(key) // AddRateLimited calls it too, and then waits.
		}
		queue.Add(key)
		item, _ := queue.Get()
		if calls.forget {
			queue.Forget(item)
		}
		if calls.done {
			queue.Done(item)
		}
		failures, delay := queue.NumRequeues(item), limiter.When(item)
		queue.Add(item)
		queued := queue.Len() == 1
		s.Printf("   %-22s failures counted %d, next back-off %-6v after an Add it is queued: %-5t  ShutDownWithDrain returns: %t\n",
			calls.name, failures, delay.String()+",", queued, drains(queue))
	}
}

// drains reports whether ShutDownWithDrain returns. If it can return, it does so within a much shorter time.
func drains(queue queue) bool {
	// After ShutDownWithDrain the goroutine that delays keys runs on until its next tick, some seconds later.
	defer queue.ShutDown()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		queue.ShutDownWithDrain()
	}()
	select {
	case <-returned:
		return true
	case <-time.After(500 * time.Millisecond):
		for !queue.ShuttingDown() {
			time.Sleep(time.Millisecond) // The goroutine has not started.
		}
		queue.ShutDown() // It makes ShutDownWithDrain return.
		<-returned
		return false
	}
}
