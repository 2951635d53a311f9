package bench

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// queueRun is one measurement of a work queue.
type queueRun struct {
	name    string
	workers int
	// adds of a number of distinct keys in turn, and the gets that follow from them.
	adds, distinct, gets int
	// work is how long a worker has a key.
	work time.Duration
	took time.Duration
}

func (q queueRun) addsPerSecond() float64 { return float64(q.adds) / q.took.Seconds() }
func (q queueRun) getsPerSecond() float64 { return float64(q.gets) / q.took.Seconds() }
func (q queueRun) addsPerGet() float64    { return float64(q.adds) / float64(q.gets) }

// measureQueue has one goroutine add keys as fast as it can, as an informer's handler does, while workers get them. First no two
// keys are equal and the workers do nothing: that is the throughput of the queue. Then few keys are added again and again while
// a worker works: the queue coalesces them. Each is run a few times, and the run of median length is returned.
func measureQueue(times int) []queueRun {
	var out []queueRun
	for _, q := range []queueRun{
		{name: "keys all differ, no work", workers: 1, adds: 500_000, distinct: 500_000},
		{name: "keys all differ, no work", workers: 4, adds: 500_000, distinct: 500_000},
		{name: "1,000 keys, 50 µs of work", workers: 1, adds: 200_000, distinct: 1000, work: 50 * time.Microsecond},
		{name: "1,000 keys, 50 µs of work", workers: 4, adds: 200_000, distinct: 1000, work: 50 * time.Microsecond},
	} {
		var runs []queueRun
		for range times {
			runs = append(runs, runQueue(q))
		}
		slices.SortFunc(runs, func(a, b queueRun) int { return int(a.took - b.took) })
		out = append(out, runs[len(runs)/2])
	}
	return out
}

func runQueue(q queueRun) queueRun {
	keys := make([]cache.ObjectName, q.distinct)
	for i := range keys {
		keys[i] = cache.ObjectName{Namespace: "default", Name: fmt.Sprintf("foo-%07d", i)}
	}
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName](),
		workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "bench"})
	var gets atomic.Int64
	var workers sync.WaitGroup
	started := time.Now()
	for range q.workers {
		workers.Go(func() {
			for {
				key, shutdown := queue.Get()
				if shutdown {
					return
				}
				gets.Add(1)
				spin(q.work)
				queue.Done(key)
			}
		})
	}
	for i := range q.adds {
		queue.Add(keys[i%q.distinct])
	}
	queue.ShutDownWithDrain()
	workers.Wait()
	q.took = time.Since(started)
	q.gets = int(gets.Load())
	return q
}

// spin is work without a sleep, which would take longer than such a short time.
func spin(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
}
