package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"example.com/workbook/01-informers/internal/handmade"
)

type object = metav1.Object

// informer is the one made by hand, with what a controller hangs on it.
type informer struct {
	*handmade.Informer
	workers *handmade.Workers
	work    *work
}

// assemble puts the parts together. What each of them does is told to the story.
func assemble(s *story) *informer {
	probe := &handmade.Probe{Observe: s.observe}

	made := handmade.New(handmade.Options{
		Name:          "configmaps",
		ListerWatcher: s.line().ListerWatcher(),
		Backoff:       &wait.Backoff{Duration: 50 * time.Millisecond, Steps: 1},
		Probe:         probe,
	})
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](50*time.Millisecond, time.Second)
	queue := handmade.NewWorkQueue("configmaps", limiter, clock.RealClock{}, probe)
	made.AddHandler(handmade.Enqueue(queue))

	work := &work{}
	return &informer{Informer: made, work: work, workers: &handmade.Workers{
		Queue: queue, Count: 1, Work: work.do, Probe: probe,
	}}
}

// run runs the informer, and the workers once the handler was told of the whole first list.
func (i *informer) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { i.Run(ctx) })
	if cache.WaitFor(ctx, "", i.HasSyncedChecker()) {
		i.workers.Run(ctx)
	}
}

// sharedInformer is client-go's own, over the same objects.
func sharedInformer(s *story) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformerWithOptions(s.line().ListerWatcher(), &corev1.ConfigMap{}, cache.SharedIndexInformerOptions{})
}

// names and versions tell what a store holds.
func names(store cache.Store) []string {
	return sorted(store, func(object object) string { return object.GetName() })
}

func versions(store cache.Store) []string { return sorted(store, handmade.ItemOf) }

func sorted(store cache.Store, tell func(object) string) []string {
	told := []string{}
	for _, obj := range store.List() {
		if object, ok := obj.(object); ok {
			told = append(told, tell(object))
		}
	}
	slices.Sort(told)
	return told
}

// work is what the worker does: nothing, but it can be held, and told to fail.
type work struct {
	mu    sync.Mutex
	held  chan struct{}
	fails bool
}

func (w *work) do(ctx context.Context, _ cache.ObjectName) error {
	w.mu.Lock()
	held, fails := w.held, w.fails
	w.fails = false
	w.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
		}
	}
	if fails {
		return errors.New("not yet")
	}
	return nil
}

// hold keeps the worker at its next piece of work, until release is called.
func (w *work) hold() (release func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := make(chan struct{})
	w.held = held
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.held = nil
		close(held)
	}
}

func (w *work) failOnce() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fails = true
}
