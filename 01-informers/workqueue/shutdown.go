package main

import (
	"context"
	"time"
)

// shutdown calls ShutDown after ShutDownWithDrain: without it the goroutine of AddAfter goes on for up to 10 s
// (delaying_queue.go, ShutDown).
func (s steps) shutdown(context.Context) error {
	s.Printf("\n7. Shutdown. With both methods the workers empty the queue, and new keys are not added.\n")
	queue := newDelaying()
	queue.Add("a")
	queue.Add("b")
	queue.AddAfter("delayed", time.Hour)
	queue.ShutDown()
	queue.Add("too late")
	s.Printf("   ShutDown:          returns at once; %d keys wait and are still processed: %d reconciliations\n",
		queue.Len(), drain(queue))

	queue = newDelaying()
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
	s.Printf("   ShutDownWithDrain: returned while a worker processes a key: %t\n", isClosed(drained))
	queue.Done(item)
	<-drained
	s.Printf("                      returned after Done: %t\n", isClosed(drained))

	queue = newDelaying()
	defer queue.ShutDown()
	queue.Add("a")
	queue.Add("b")
	queue.ShutDownWithDrain()
	s.Printf("                      if no worker processes a key, it returns at once, with %d keys waiting:\n", queue.Len())
	s.Printf("                      so wait for the workers too, not only for the queue\n")
	return nil
}

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}
