package main

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"example.com/workbook/01-informers/internal/handmade"
)

type object = metav1.Object

// informer is the informer assembled by hand, with the work queue and the workers of a controller.
type informer struct {
	*handmade.Informer
	workers *handmade.Workers
}

// assemble connects the parts. The session observes each of them.
func assemble(s *session) *informer {
	probe := &handmade.Probe{Observe: s.observe}
	made := handmade.New(handmade.Options{Name: "configmaps", ListerWatcher: s.listerWatcher(), Probe: probe})
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](50*time.Millisecond, time.Second)
	queue := handmade.NewWorkQueue("configmaps", limiter, clock.RealClock{}, probe)
	made.AddHandler(handmade.Enqueue(queue))
	// The worker does nothing: what a reconciliation does is the subject of chapter 09.
	work := func(context.Context, cache.ObjectName) error { return nil }
	return &informer{Informer: made, workers: &handmade.Workers{Queue: queue, Count: 1, Work: work, Probe: probe}}
}

// run runs the informer, and the workers once the handler has been notified of the whole initial list.
func (i *informer) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { i.Run(ctx) })
	if cache.WaitFor(ctx, "", i.HasSyncedChecker()) {
		i.workers.Run(ctx)
	}
}

// sharedInformer returns client-go's informer for the same objects.
func sharedInformer(s *session) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformerWithOptions(s.listerWatcher(), &corev1.ConfigMap{}, cache.SharedIndexInformerOptions{})
}

// states returns the uids and resourceVersions of the objects in a store.
func states(store cache.Store) []string {
	states := []string{}
	for _, obj := range store.List() {
		if object, ok := obj.(object); ok {
			states = append(states, handmade.ItemOf(object))
		}
	}
	slices.Sort(states)
	return states
}
