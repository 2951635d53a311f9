// Package main is the lesson on the work queue between the event handlers of an informer and the workers of a
// controller. A handler adds a key. A worker gets it, reconciles the object, and calls Done. It needs no cluster.
//
// Source, k8s.io/client-go v0.37.2, under util/workqueue; each file builds on the one before it:
//
//	queue.go                  Typed: the queue and the sets dirty and processing
//	delaying_queue.go         AddAfter: a heap of keys and their times
//	rate_limiting_queue.go    AddRateLimited, Forget, NumRequeues
//	default_rate_limiters.go  the delays of AddRateLimited
//	metrics.go                MetricsProvider
//
// The names without a type parameter (RateLimitingInterface, NewNamedRateLimitingQueue and so on) are deprecated. By
// default controller-runtime has a priority queue (sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue): it
// coalesces keys and gives a key to one worker as this one does, and orders the keys by priority.
package main

import (
	"context"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"example.com/workbook/01-informers/internal/lesson"
)

// queue is the queue of a controller. Its keys have a field for each part of the name, so no worker splits a string.
type queue = workqueue.TypedRateLimitingInterface[cache.ObjectName]

func main() { lesson.Main(program) }

var program = lesson.Lesson{
	Name:    "workqueue",
	Shows:   "The queue of a controller: coalescing, one worker for a key, back-off, Forget and Done, metrics, and the loop around it.",
	Offline: true,
	Run: func(ctx context.Context, env *lesson.Env) {
		s := steps{env}
		s.guarantees()
		s.backOff()
		s.forgetAndDone()
		s.mistakes()
		s.metrics()
		s.loop(ctx)
		s.levelTriggered(ctx)
	},
}

// steps print to Out.
type steps struct{ *lesson.Env }
