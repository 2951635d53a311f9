package main

import (
	"time"

	"k8s.io/client-go/util/workqueue"
)

// delayStory adds items and says what workers get until nothing more comes.
type delayStory struct {
	says string
	add  func(workqueue.TypedDelayingInterface[string])
}

const (
	soon  = 50 * time.Millisecond
	later = 200 * time.Millisecond
)

var delayStories = []delayStory{
	{"late after 200 ms, early after 50 ms, now after 0", func(queue workqueue.TypedDelayingInterface[string]) {
		queue.AddAfter("late", later)
		queue.AddAfter("early", soon)
		queue.AddAfter("now", 0)
	}},
	{"one item after 200 ms, and again after 50 ms", func(queue workqueue.TypedDelayingInterface[string]) {
		queue.AddAfter("item", later)
		queue.AddAfter("item", soon) // of two times the earlier counts: the heap has an item once
	}},
	{"one item after 200 ms, and meanwhile an Add", func(queue workqueue.TypedDelayingInterface[string]) {
		queue.AddAfter("item", later)
		queue.Add("item") // does not take it out of the heap
	}},
}

// play returns the items in the order in which a worker gets them.
func play(story delayStory) (got []string) {
	queue := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{})
	timer := time.AfterFunc(2*later, queue.ShutDown)
	defer timer.Stop()
	story.add(queue)
	for {
		item, shutdown := queue.Get()
		if shutdown {
			return got
		}
		got = append(got, item)
		queue.Done(item)
	}
}
