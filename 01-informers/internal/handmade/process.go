package handmade

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
)

// process applies one delta to the store and then calls the handlers: a handler that reads the store finds the change that
// it was called for, or a newer one. It does what processDeltas in tools/cache/controller.go does.
func (i *Informer) process(obj any, isInInitialList bool) error {
	deltas, ok := obj.(cache.Deltas)
	if !ok {
		return fmt.Errorf("the queue returned a %T, not deltas", obj)
	}
	i.deltas.Lock()
	defer i.deltas.Unlock()
	defer i.probe.note(func(t *traffic) { t.deltas-- })
	for _, delta := range deltas {
		if err := i.apply(delta, isInInitialList); err != nil {
			return fmt.Errorf("processing a delta of type %s: %w", delta.Type, err)
		}
	}
	return nil
}

// apply handles the five types of deltas of a RealFIFO with AtomicEvents and without resync. It has no Replaced and Sync.
func (i *Informer) apply(delta cache.Delta, isInInitialList bool) error {
	switch delta.Type {
	case cache.Added, cache.Updated:
		return i.put(delta.Object, isInInitialList)
	case cache.Deleted:
		return i.remove(delta.Object)
	}
	switch info := delta.Object.(type) {
	case cache.ReplacedAllInfo:
		return i.replaceAll(info, isInInitialList)
	case cache.BookmarkInfo:
		i.indexer.Bookmark(info.ResourceVersion)
		return nil
	}
	return fmt.Errorf("it holds a %T", delta.Object)
}

// put adds or updates an object. The content of the store decides which, not the type of the watch event: after a new
// watch, ADDED may be the type for an object that the store has.
func (i *Informer) put(obj any, isInInitialList bool) error {
	old, known, err := i.indexer.Get(obj)
	if err != nil {
		return err
	}
	if known {
		if err := i.indexer.Update(obj); err != nil {
			return err
		}
		i.updated(old, obj)
		return nil
	}
	if err := i.indexer.Add(obj); err != nil {
		return err
	}
	i.added(obj, isInInitialList)
	return nil
}

func (i *Informer) remove(obj any) error {
	if err := i.indexer.Delete(obj); err != nil {
		return err
	}
	i.deleted(obj)
	return nil
}

// replaceAll replaces the store's content by a list. An object that the list does not have was deleted while no watch was
// open: there was no event for it, so handlers get its last known state, as a tombstone.
func (i *Informer) replaceAll(info cache.ReplacedAllInfo, isInInitialList bool) error {
	before := contents(i.indexer)
	listed := sets.New[string]()
	for _, obj := range info.Objects {
		key, err := cache.MetaNamespaceKeyFunc(obj)
		if err != nil {
			return err
		}
		listed.Insert(key)
	}

	if err := i.indexer.Replace(info.Objects, info.ResourceVersion); err != nil {
		return err
	}
	for _, key := range sets.List(sets.KeySet(before).Difference(listed)) {
		i.deleted(cache.DeletedFinalStateUnknown{Key: key, Obj: before[key]})
	}
	for _, obj := range info.Objects {
		key, _ := cache.MetaNamespaceKeyFunc(obj)
		if old, known := before[key]; known {
			i.updated(old, obj)
		} else {
			i.added(obj, isInInitialList)
		}
	}
	return nil
}

// contents returns the objects in a store by their keys.
func contents(store cache.Store) map[string]any {
	all := map[string]any{}
	for _, key := range store.ListKeys() {
		all[key], _, _ = store.GetByKey(key)
	}
	return all
}

// AddHandler adds a handler. It is called first for every object in the store, as additions of the initial list, and then
// for each change.
func (i *Informer) AddHandler(handler Handler) {
	if i.probe != nil {
		handler = &observedHandler{inner: handler, probe: i.probe}
	}
	i.deltas.Lock()
	defer i.deltas.Unlock()
	for _, obj := range i.indexer.List() {
		handler.OnAdd(obj.(object), true)
	}
	i.handlers = append(i.handlers, handler)
}

func (i *Informer) added(obj any, isInInitialList bool) {
	for _, handler := range i.handlers {
		handler.OnAdd(obj.(object), isInInitialList)
	}
}

func (i *Informer) updated(before, after any) {
	for _, handler := range i.handlers {
		handler.OnUpdate(before.(object), after.(object))
	}
}

// deleted calls the handlers with the object of the watch event, or with the last known state.
func (i *Informer) deleted(obj any) {
	gone := cache.DeletedObject[object]{}
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		gone.FinalStateUnknown = &unknown
		obj = unknown.Obj
	}
	gone.OptionalObj, _ = obj.(object)
	for _, handler := range i.handlers {
		handler.OnDelete(gone)
	}
}
