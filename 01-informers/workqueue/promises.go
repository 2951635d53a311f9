package main

import (
	"runtime"
	"sync"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

var key = cache.NewObjectName("shop", "web")

// coalesce adds one key n times before a worker comes.
func coalesce(n int) (waiting, passes int) {
	queue := workqueue.NewTyped[cache.ObjectName]()
	for range n {
		queue.Add(key)
	}
	waiting = queue.Len()
	return waiting, drain(queue)
}

// drain shuts a queue down and works until it is empty.
func drain[T comparable](queue workqueue.TypedInterface[T]) (passes int) {
	queue.ShutDown()
	for {
		item, shutdown := queue.Get()
		if shutdown {
			return passes
		}
		passes++
		queue.Done(item)
	}
}

// whileWorkedOn is what comes of a key that was added while a worker had it.
type whileWorkedOn struct {
	waitingBefore, waitingAfter int // before and after the worker said Done
	passes                      int
}

// addWhileWorkedOn adds a key n times while a worker has it. The key is dirty then, and not in the queue:
// Done puts it there (queue.go, Add and Done).
func addWhileWorkedOn(n int) whileWorkedOn {
	queue := workqueue.NewTyped[cache.ObjectName]()
	queue.Add(key)
	item, _ := queue.Get()
	for range n {
		queue.Add(item)
	}
	before := queue.Len()
	queue.Done(item)
	after := queue.Len()
	return whileWorkedOn{waitingBefore: before, waitingAfter: after, passes: 1 + drain(queue)}
}

// crowd is what was seen of many workers.
type crowd struct {
	perKey, overall int // workers at once, at most
	allSeen         bool
}

// stress lets workers work on a few keys while those are added again and again. Each Add says what the
// newest version of its key is; a pass must not miss the last.
func stress(workers, keys, adds int) crowd {
	queue := workqueue.NewTyped[int]()
	var lock sync.Mutex
	newest, seen, working := make([]int, keys), make([]int, keys), make([]int, keys)
	result, atOnce := crowd{allSeen: true}, 0

	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				key, shutdown := queue.Get()
				if shutdown {
					return
				}
				lock.Lock()
				working[key]++
				atOnce++
				result.perKey, result.overall = max(result.perKey, working[key]), max(result.overall, atOnce)
				seen[key] = newest[key]
				lock.Unlock()
				runtime.Gosched()
				lock.Lock()
				working[key]--
				atOnce--
				lock.Unlock()
				queue.Done(key)
			}
		})
	}
	for i := range adds {
		key := i % keys
		lock.Lock()
		newest[key] = i
		lock.Unlock()
		queue.Add(key)
	}
	queue.ShutDown()
	wg.Wait()
	for key := range keys {
		result.allSeen = result.allSeen && seen[key] == newest[key]
	}
	return result
}
