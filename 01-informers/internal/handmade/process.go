package handmade

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
)

// process brings one delta into the store and then tells the handlers: first the store, so that a handler that
// looks there finds what it was told, or something newer. It is what processDeltas does in tools/cache/controller.go.
func (i *Informer) process(obj any, isInInitialList bool) error {
	deltas, ok := obj.(cache.Deltas)
	if !ok {
		return fmt.Errorf("a %T came out of the queue, not deltas", obj)
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

// apply is the one place where the types of deltas matter. From a RealFIFO with AtomicEvents and without
// resync there are these five; the older Replaced and Sync do not occur.
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

// put adds an object or replaces the one that is there. The store decides which of the two it was, not the
// type of the watch event: after a watch that began again, ADDED may come for an object that is known.
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

// replaceAll replaces the store's content by a list. What the list no longer has was deleted while no watch was
// open: nobody saw it go, so that all there is to hand over is the last known state, as a tombstone.
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

// AddHandler adds a handler. One that comes late is told of everything that is in the store, as additions
// of the initial list, before it is told of anything that happens afterwards.
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

// deleted hands over the object as the watch brought it, or the last state that the store knew.
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
