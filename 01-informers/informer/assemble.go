package main

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"example.com/workbook/01-informers/internal/handmade"
)

type object = metav1.Object

// assemble connects the parts of an informer, and the work queue and the workers of a controller. The session observes each
// of them.
func assemble(s *session) (*handmade.Informer, *handmade.Workers) {
	probe := &handmade.Probe{Observe: s.observe}
	informer := handmade.New(handmade.Options{Name: "configmaps", ListerWatcher: s.listerWatcher(), Probe: probe})
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](50*time.Millisecond, time.Second)
	queue := handmade.NewWorkQueue("configmaps", limiter, probe)
	informer.AddHandler(handmade.Enqueue(queue))
	// The worker does nothing: what a reconciliation does is the subject of chapter 09.
	work := func(context.Context, cache.ObjectName) error { return nil }
	return informer, &handmade.Workers{Queue: queue, Count: 1, Work: work, Probe: probe}
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
