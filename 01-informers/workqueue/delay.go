package main

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
)

const (
	soon  = 50 * time.Millisecond
	later = 200 * time.Millisecond
)

func newDelaying() workqueue.TypedDelayingInterface[string] {
	return workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{})
}

func (s steps) addAfter(context.Context) error {
	s.Printf("\n6. AddAfter\n")
	for _, test := range []struct {
		text string
		add  func(workqueue.TypedDelayingInterface[string])
	}{
		{"late after 200 ms, early after 50 ms, now after 0", func(queue workqueue.TypedDelayingInterface[string]) {
			queue.AddAfter("late", later)
			queue.AddAfter("early", soon)
			queue.AddAfter("now", 0)
		}},
		{"one item after 200 ms, and again after 50 ms", func(queue workqueue.TypedDelayingInterface[string]) {
			queue.AddAfter("item", later)
			queue.AddAfter("item", soon) // The heap has an item once, with the earlier time.
		}},
		{"one item after 200 ms, and an Add before that", func(queue workqueue.TypedDelayingInterface[string]) {
			queue.AddAfter("item", later)
			queue.Add("item") // The item stays in the heap too.
		}},
	} {
		queue := newDelaying()
		timer := time.AfterFunc(2*later, queue.ShutDown)
		test.add(queue)
		var got []string
		for item, shutdown := queue.Get(); !shutdown; item, shutdown = queue.Get() {
			got = append(got, item)
			queue.Done(item)
		}
		timer.Stop()
		s.Printf("   %-58s %v\n", test.text+":", got)
	}
	return nil
}
