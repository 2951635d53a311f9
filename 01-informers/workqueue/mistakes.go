package main

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// pointersAsKeys adds an object twice, each time as it was read. Two pointers are two keys, whatever they
// point to: nothing is coalesced, and two workers have one object at once.
func pointersAsKeys() (waiting int) {
	queue := workqueue.NewTyped[*corev1.Pod]()
	defer queue.ShutDown()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	queue.Add(pod.DeepCopy())
	queue.Add(pod.DeepCopy())
	return queue.Len()
}

// doneTwice says Done once too often, for a key that waits again by then. Done puts a dirty key into the
// queue without asking whether it is there (queue.go, Done), so it is there twice.
func doneTwice() (workers int) {
	queue := workqueue.NewTyped[cache.ObjectName]()
	queue.Add(key)
	item, _ := queue.Get()
	queue.Add(item)
	queue.Done(item)
	queue.Done(item)
	queue.ShutDown()
	for {
		if _, shutdown := queue.Get(); shutdown {
			return workers
		}
		workers++ // and none of them has said Done
	}
}

// handlerAddsRateLimited lets a handler add a healthy key so many times as if it had failed.
func handlerAddsRateLimited(events int) (failures int, next time.Duration) {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](baseDelay, maxDelay)
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{})
	defer queue.ShutDown()
	for range events {
		queue.AddRateLimited(key)
	}
	return queue.NumRequeues(key), limiter.When(key)
}

// forgetThenFail is a worker that says Forget after every pass, good or bad: what fails is tried again
// every 5 ms, for ever.
func forgetThenFail(failures int) []time.Duration {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](baseDelay, maxDelay)
	waits := make([]time.Duration, failures)
	for i := range waits {
		limiter.Forget(key)
		waits[i] = limiter.When(key)
	}
	return waits
}
