package main

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

func (s steps) mistakes() {
	s.Printf("\n5. Other mistakes\n")

	// Two pointers are two keys, even to equal objects: the queue does not coalesce them, and two workers process the same
	// object at the same time.
	pointers := workqueue.NewTyped[*corev1.Pod]()
	defer pointers.ShutDown()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	pointers.Add(pod.DeepCopy())
	pointers.Add(pod.DeepCopy())
	s.Printf("   a pointer as the key: two Adds of an object that was read twice: %d waiting\n", pointers.Len())

	s.Printf("   Done called twice after one Get: workers with that key:          %d\n", doneTwice())

	limiter := newLimiter[cache.ObjectName]()
	queue := newQueueWith(limiter)
	defer queue.ShutDown()
	for range 5 {
		queue.AddRateLimited(key)
	}
	s.Printf("   AddRateLimited in an event handler: 5 events count as failures:  %d, the first real failure waits %v\n",
		queue.NumRequeues(key), limiter.When(key))

	waits := make([]time.Duration, 4)
	for i := range waits {
		limiter.Forget(key)
		waits[i] = limiter.When(key)
	}
	s.Printf("   Forget before each AddRateLimited: the delays of failures:       %v\n", waits)
}

// doneTwice calls Done twice for a key that is dirty. Each Done appends it to the queue (queue.go, Done). It returns how
// many workers get the key without a Done between them.
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
		workers++
	}
}
