package main

import (
	"fmt"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// What workqueue.DefaultTypedControllerRateLimiter is made of (default_rate_limiters.go).
const (
	baseDelay   = 5 * time.Millisecond
	maxDelay    = 1000 * time.Second
	bucketRate  = rate.Limit(10)
	bucketBurst = 100
)

// delays lets one item fail n times and returns how long it would wait each time.
func delays(limiter workqueue.TypedRateLimiter[string], n int) []time.Duration {
	waits := make([]time.Duration, n)
	for i := range waits {
		waits[i] = limiter.When("item")
	}
	return waits
}

// bucketDelays lets n different items fail at the same moment. The bucket goes by the clock, so the delays
// are rounded to tenths of a second.
func bucketDelays(n int) []time.Duration {
	limiter := &workqueue.TypedBucketRateLimiter[int]{Limiter: rate.NewLimiter(bucketRate, bucketBurst)}
	waits := make([]time.Duration, n)
	for i := range waits {
		waits[i] = limiter.When(i).Round(100 * time.Millisecond)
	}
	return waits
}

// habit is what a worker does at the end of a pass that went well.
type habit struct{ forget, done bool }

var habits = []habit{{forget: true, done: true}, {done: true}, {forget: true}, {}}

func (h habit) String() string {
	return map[habit]string{
		{true, true}:   "Forget and Done:",
		{false, true}:  "Done, no Forget:",
		{true, false}:  "Forget, no Done:",
		{false, false}: "neither:",
	}[h]
}

// consequences are what a habit leaves behind.
type consequences struct {
	failures  int           // that the limiter still knows of: an entry in a map, for ever
	nextDelay time.Duration // of the next failure
	comesBack bool          // does a worker get the key when it is added again?
	drains    bool          // does ShutDownWithDrain return?
}

func (c consequences) String() string {
	return fmt.Sprintf("failures remembered %d, next back-off %-6v added again it is worked on: %-5t  ShutDownWithDrain returns: %t",
		c.failures, c.nextDelay.String()+",", c.comesBack, c.drains)
}

// consequencesOf lets a key fail four times, succeed, and end with this habit.
func consequencesOf(habit habit) consequences {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](baseDelay, maxDelay)
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{})
	defer queue.ShutDown()
	for range 4 {
		limiter.When(key) // what AddRateLimited does, without the waiting
	}
	queue.Add(key)
	item, _ := queue.Get()
	if habit.forget {
		queue.Forget(item)
	}
	if habit.done {
		queue.Done(item)
	}

	result := consequences{failures: queue.NumRequeues(item), nextDelay: limiter.When(item)}
	queue.Add(item)
	result.comesBack = queue.Len() == 1
	result.drains = drains(queue, 500*time.Millisecond)
	return result
}

// drains says whether ShutDownWithDrain returns, within a time that is ample where it does.
func drains(queue queue, patience time.Duration) bool {
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		queue.ShutDownWithDrain()
	}()
	select {
	case <-returned:
		return true
	case <-time.After(patience):
		for !queue.ShuttingDown() {
			time.Sleep(time.Millisecond) // the goroutine has not begun
		}
		queue.ShutDown() // lets ShutDownWithDrain return
		<-returned
		return false
	}
}
