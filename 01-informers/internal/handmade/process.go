package handmade

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	defer i.probe.processed()
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
	case cache.ReplacedAll:
		info, ok := delta.Object.(cache.ReplacedAllInfo)
		if !ok {
			return fmt.Errorf("it holds a %T", delta.Object)
		}
		return i.replaceAll(info, isInInitialList)
	case cache.Bookmark:
		info, ok := delta.Object.(cache.BookmarkInfo)
		if !ok {
			return fmt.Errorf("it holds a %T", delta.Object)
		}
		i.indexer.Bookmark(info.ResourceVersion)
		return nil
	default:
		return fmt.Errorf("the type is unknown")
	}
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
	before := map[string]any{}
	for _, key := range i.indexer.ListKeys() {
		before[key], _, _ = i.indexer.GetByKey(key)
	}
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

// AddHandler adds a handler. It is called first for every object in the store, as additions of the initial list, and then
// for each change.
func (i *Informer) AddHandler(handler Handler) {
	handler = i.probe.handler(handler)
	i.deltas.Lock()
	defer i.deltas.Unlock()
	for _, obj := range i.indexer.List() {
		if object, ok := obj.(metav1.Object); ok {
			handler.OnAdd(object, true)
		}
	}
	i.handlers = append(i.handlers, handler)
}

func (i *Informer) added(obj any, isInInitialList bool) {
	object, ok := obj.(metav1.Object)
	if !ok {
		return
	}
	for _, handler := range i.handlers {
		handler.OnAdd(object, isInInitialList)
	}
}

func (i *Informer) updated(oldObj, newObj any) {
	before, _ := oldObj.(metav1.Object)
	after, ok := newObj.(metav1.Object)
	if !ok {
		return
	}
	for _, handler := range i.handlers {
		handler.OnUpdate(before, after)
	}
}

// deleted calls the handlers with the object of the watch event, or with the last known state.
func (i *Informer) deleted(obj any) {
	gone := cache.DeletedObject[metav1.Object]{}
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		gone.FinalStateUnknown = &unknown
		obj = unknown.Obj
	}
	gone.OptionalObj, _ = obj.(metav1.Object)
	for _, handler := range i.handlers {
		handler.OnDelete(gone)
	}
}
