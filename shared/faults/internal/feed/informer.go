// Package feed has the two parts of an operator's process that a schedule takes the place of: informers that deliver an
// event when they are told to, and a queue that hands out a key when it is told to.
package feed

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// startLimit is how long an informer that is asked whether it has synced waits for its start. Who asks a second time
// waits for 100 ms in between.
const startLimit = 5 * time.Second

// Informer is an informer without a watch. What its first list has, and each event after it, is decided by who holds it.
type Informer struct {
	indexer cache.Indexer
	initial func() []client.Object
	filled  chan struct{}

	mu        sync.Mutex
	transform cache.TransformFunc
	handlers  []*registration
	stopped   bool
}

var _ cache.SharedIndexInformer = (*Informer)(nil)

// NewInformer returns an informer whose first list, at its start, is what initial returns.
func NewInformer(indexers cache.Indexers, initial func() []client.Object) *Informer {
	return &Informer{
		indexer: cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, indexers),
		initial: initial,
		filled:  make(chan struct{}),
	}
}

// Set delivers that an object was created or changed. old is nil if the store lacked it.
func (i *Informer) Set(object client.Object) error {
	stored, err := i.transformed(object)
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	old, exists, err := i.indexer.Get(stored)
	if err == nil {
		err = i.indexer.Update(stored)
	}
	if err != nil {
		return err
	}
	for _, one := range i.handlers {
		if exists {
			one.OnUpdate(old, stored)
		} else {
			one.OnAdd(stored, false)
		}
	}
	return nil
}

// Delete delivers that an object was deleted; missed says that a list showed it, so that its last state is not known.
func (i *Informer) Delete(object client.Object, missed bool) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	old, exists, err := i.indexer.Get(object)
	if err != nil || !exists {
		return err
	}
	var last any
	if missed {
		key, err := cache.MetaNamespaceKeyFunc(old)
		if err != nil {
			return err
		}
		last = cache.DeletedFinalStateUnknown{Key: key, Obj: old}
	} else if last, err = i.transformedLocked(object); err != nil {
		return err
	}
	if err := i.indexer.Delete(old); err != nil {
		return err
	}
	for _, one := range i.handlers {
		one.OnDelete(last)
	}
	return nil
}

// Has returns what the store has of an object; nil if it lacks it.
func (i *Informer) Has(object client.Object) client.Object {
	found, exists, err := i.indexer.Get(object)
	if err != nil || !exists {
		return nil
	}
	return found.(client.Object)
}

// All returns what the store has.
func (i *Informer) All() []client.Object {
	var all []client.Object
	for _, one := range i.indexer.List() {
		all = append(all, one.(client.Object))
	}
	return all
}

func (i *Informer) transformed(object client.Object) (client.Object, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.transformedLocked(object)
}

func (i *Informer) transformedLocked(object client.Object) (client.Object, error) {
	own := object.DeepCopyObject().(client.Object)
	if i.transform == nil {
		return own, nil
	}
	changed, err := i.transform(own)
	if err != nil {
		return nil, err
	}
	return changed.(client.Object), nil
}

// Run lists once, delivers that, and waits for its end.
func (i *Informer) Run(stop <-chan struct{}) {
	i.fill()
	<-stop
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stopped = true
}

func (i *Informer) fill() {
	objects := i.initial()
	i.mu.Lock()
	defer i.mu.Unlock()
	defer close(i.filled)
	for _, object := range objects {
		stored, err := i.transformedLocked(object)
		if err != nil {
			continue
		}
		_ = i.indexer.Add(stored)
		for _, one := range i.handlers {
			one.OnAdd(stored, true)
		}
	}
}

// RunWithContext is Run, for those who have a context.
func (i *Informer) RunWithContext(ctx context.Context) { i.Run(ctx.Done()) }

// AddEventHandler adds a handler, and delivers to it what the store has.
func (i *Informer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopped {
		return nil, errors.New("the informer has stopped")
	}
	added := &registration{ResourceEventHandler: handler, filled: i.filled}
	i.handlers = append(i.handlers, added)
	for _, object := range i.indexer.List() {
		handler.OnAdd(object, true)
	}
	return added, nil
}

// AddEventHandlerWithResyncPeriod is AddEventHandler: nothing is delivered again unless a schedule says so.
func (i *Informer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

// AddEventHandlerWithOptions is AddEventHandler.
func (i *Informer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

// RemoveEventHandler removes what AddEventHandler has added.
func (i *Informer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	var kept []*registration
	for _, one := range i.handlers {
		if one != handle {
			kept = append(kept, one)
		}
	}
	i.handlers = kept
	return nil
}

// HasSynced waits until it has started.
func (i *Informer) HasSynced() bool {
	select {
	case <-i.filled:
		return true
	case <-time.After(startLimit):
		return false
	}
}

// HasSyncedChecker is closed when it has started.
func (i *Informer) HasSyncedChecker() cache.DoneChecker { return done{i.filled} }

// SetTransform sets what is called for each object before it is stored.
func (i *Informer) SetTransform(transform cache.TransformFunc) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.transform = transform
	return nil
}

// IsStopped reports whether it has ended.
func (i *Informer) IsStopped() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stopped
}

// GetStore returns the store.
func (i *Informer) GetStore() cache.Store { return i.indexer }

// GetIndexer returns the store.
func (i *Informer) GetIndexer() cache.Indexer { return i.indexer }

// AddIndexers adds indexes to the store.
func (i *Informer) AddIndexers(indexers cache.Indexers) error { return i.indexer.AddIndexers(indexers) }

// GetController returns what does nothing.
func (i *Informer) GetController() cache.Controller { return nil }

// LastSyncResourceVersion is unknown.
func (i *Informer) LastSyncResourceVersion() string { return "" }

// SetWatchErrorHandler does nothing: there is no watch.
func (i *Informer) SetWatchErrorHandler(cache.WatchErrorHandler) error { return nil }

// SetWatchErrorHandlerWithContext does nothing: there is no watch.
func (i *Informer) SetWatchErrorHandlerWithContext(cache.WatchErrorHandlerWithContext) error {
	return nil
}

// registration is one handler.
type registration struct {
	cache.ResourceEventHandler
	filled chan struct{}
}

func (r *registration) HasSynced() bool {
	select {
	case <-r.filled:
		return true
	case <-time.After(startLimit):
		return false
	}
}

func (r *registration) HasSyncedChecker() cache.DoneChecker { return done{r.filled} }

type done struct{ channel chan struct{} }

func (d done) Name() string { return "fed informer" }

func (d done) Done() <-chan struct{} { return d.channel }

// Typed turns what an API server sends into an object of the type that an informer has.
func Typed(scheme *runtime.Scheme, sample runtime.Object, content map[string]any) (client.Object, error) {
	if _, ok := sample.(runtime.Unstructured); ok {
		return nil, errors.New("unstructured objects are not fed yet")
	}
	kinds, _, err := scheme.ObjectKinds(sample)
	if err != nil {
		return nil, err
	}
	object, err := scheme.New(kinds[0])
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, object); err != nil {
		return nil, err
	}
	return object.(client.Object), nil
}
