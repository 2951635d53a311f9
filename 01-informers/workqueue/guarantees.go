package main

import (
	"runtime"
	"sync"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

var key = cache.NewObjectName("shop", "web")

func (s steps) guarantees() {
	s.Printf("1. A waiting key is in the queue once\n")
	queue := workqueue.NewTyped[cache.ObjectName]()
	for range 100 {
		queue.Add(key)
	}
	waiting := queue.Len()
	s.Printf("   one key added 100 times before a Get:          %d waiting, %d reconciliation\n", waiting, drain(queue))

	s.Printf("\n2. Two workers never process the same key at the same time\n")
	queue = workqueue.NewTyped[cache.ObjectName]()
	queue.Add(key)
	item, _ := queue.Get()
	for range 100 {
		queue.Add(item)
	}
	// The key is in the set dirty and not in the queue. Done moves it to the queue (queue.go, Add and Done).
	s.Printf("   added 100 times while a worker processes it:   %d waiting\n", queue.Len())
	queue.Done(item)
	s.Printf("   after that worker calls Done:                  %d waiting\n", queue.Len())
	s.Printf("   reconciliations in total:                      %d\n", 1+drain(queue))
	perKey, allSeen := stress(8, 3, 5000)
	s.Printf("   8 workers, 3 keys, 5000 Adds:                  at most %d worker for a key, no key lost: %t\n", perKey, allSeen)
}

// drain shuts a queue down and processes the waiting items. It returns their number.
func drain[T comparable](queue workqueue.TypedInterface[T]) (items int) {
	queue.ShutDown()
	for {
		item, shutdown := queue.Get()
		if shutdown {
			return items
		}
		items++
		queue.Done(item)
	}
}

// stress adds a few keys again and again while workers process them. perKey is the largest number of workers with the
// same key. allSeen reports whether the last reconciliation of each key began after its last Add.
func stress(workers, keys, adds int) (perKey int, allSeen bool) {
	queue := workqueue.NewTyped[int]()
	var lock sync.Mutex
	newest, seen, working := make([]int, keys), make([]int, keys), make([]int, keys)

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
				perKey = max(perKey, working[key])
				seen[key] = newest[key]
				lock.Unlock()
				runtime.Gosched()
				lock.Lock()
				working[key]--
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
	allSeen = true
	for key := range keys {
		allSeen = allSeen && seen[key] == newest[key]
	}
	return perKey, allSeen
}
