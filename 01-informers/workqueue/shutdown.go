package main

import (
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// shutdownLines are what can be seen of a queue's end. After ShutDownWithDrain it is ended once more, by
// ShutDown: only that ends the goroutine of AddAfter at once (delaying_queue.go, ShutDown). Otherwise it
// notices within 10 s.
func shutdownLines() []string {
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }

	queue := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{})
	queue.Add("a")
	queue.Add("b")
	queue.AddAfter("waits for its time", time.Hour)
	queue.ShutDown()
	queue.Add("too late")
	say("ShutDown:          returns at once; %d keys wait and are still worked on: %d passes", queue.Len(), drain(queue))

	queue = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{})
	defer queue.ShutDown()
	queue.Add("a")
	item, _ := queue.Get()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		queue.ShutDownWithDrain()
	}()
	for !queue.ShuttingDown() {
		time.Sleep(time.Millisecond)
	}
	say("ShutDownWithDrain: while a worker has a key it has returned: %t", isClosed(drained))
	queue.Done(item)
	<-drained
	say("                   after Done it has returned: %t", isClosed(drained))

	queue = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{})
	defer queue.ShutDown()
	queue.Add("a")
	queue.Add("b")
	queue.ShutDownWithDrain()
	say("                   where no worker has a key it returns at once, and leaves %d waiting:", queue.Len())
	say("                   so wait for the workers too, not only for the queue")
	return lines
}

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}
