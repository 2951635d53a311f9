package handmade

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
)

// observedQueue reports what the reflector queues. It reports first: afterwards the pop loop may process it already.
type observedQueue struct {
	*cache.RealFIFO
	probe *Probe
}

func (q *observedQueue) Add(obj any) error { q.enter(cache.Added, obj); return q.RealFIFO.Add(obj) }
func (q *observedQueue) Update(obj any) error {
	q.enter(cache.Updated, obj)
	return q.RealFIFO.Update(obj)
}
func (q *observedQueue) Delete(obj any) error {
	q.enter(cache.Deleted, obj)
	return q.RealFIFO.Delete(obj)
}

func (q *observedQueue) enter(delta cache.DeltaType, obj any) {
	event := about(StageQueue, string(delta), obj)
	q.probe.Gate.wait(event, func(t *traffic) { t.watched-- }, func(t *traffic) { t.deltas++ })
	q.probe.Observe(event)
}

// Replace queues a whole list as one delta.
func (q *observedQueue) Replace(objects []any, resourceVersion string) error {
	initial := !q.probe.populated.Load()
	event := Event{Stage: StageQueue, Type: string(cache.ReplacedAll), Count: len(objects), ResourceVersion: resourceVersion, Initial: initial}
	q.probe.Gate.wait(event, func(t *traffic) { t.listing = false }, func(t *traffic) { t.deltas++ })
	q.probe.Observe(event)
	for _, object := range objects {
		event := about(StageQueue, string(cache.ReplacedAll), object)
		event.Initial, event.PartOfList = initial, true
		q.probe.Observe(event)
	}
	q.probe.populated.Store(true)
	return q.RealFIFO.Replace(objects, resourceVersion)
}

// Bookmark queues a resourceVersion without an object. It does not wait for the gate, because it moves no item.
func (q *observedQueue) Bookmark(resourceVersion string) error {
	q.probe.Gate.note(func(t *traffic) { t.deltas++ })
	q.probe.Observe(Event{Stage: StageQueue, Type: string(cache.Bookmark), ResourceVersion: resourceVersion})
	return q.RealFIFO.Bookmark(resourceVersion)
}

// observedIndexer reports what changes in the store, after it has changed.
type observedIndexer struct {
	cache.Indexer
	probe    *Probe
	replaced bool // the first list is in the store; only the pop loop uses this field
}

func (i *observedIndexer) Add(obj any) error    { return i.change(Add, obj, i.Indexer.Add) }
func (i *observedIndexer) Update(obj any) error { return i.change(Update, obj, i.Indexer.Update) }
func (i *observedIndexer) Delete(obj any) error { return i.change(Delete, obj, i.Indexer.Delete) }

func (i *observedIndexer) change(what string, obj any, change func(any) error) error {
	event := about(StageStore, what, obj)
	i.probe.wait(event)
	if err := change(obj); err != nil {
		return err
	}
	i.probe.Observe(event)
	return nil
}

// Replace replaces the whole content at once. It reports for each object what changed.
func (i *observedIndexer) Replace(objects []any, resourceVersion string) error {
	initial := !i.replaced
	event := Event{Stage: StageStore, Type: Replace, Count: len(objects), ResourceVersion: resourceVersion, Initial: initial}
	i.probe.wait(event)
	gone := contents(i)
	known := sets.KeySet(gone)

	if err := i.Indexer.Replace(objects, resourceVersion); err != nil {
		return err
	}
	i.replaced = true
	i.probe.Observe(event)
	for _, object := range objects {
		key, _ := cache.MetaNamespaceKeyFunc(object)
		delete(gone, key)
		change := about(StageStore, Add, object)
		if known.Has(key) {
			change.Type = Update
		}
		change.Initial, change.PartOfList = initial, true
		i.probe.Observe(change)
	}
	for _, key := range sets.List(sets.KeySet(gone)) {
		change := about(StageStore, Delete, cache.DeletedFinalStateUnknown{Key: key, Obj: gone[key]})
		change.PartOfList = true
		i.probe.Observe(change)
	}
	return nil
}

// Bookmark sets the resourceVersion of the store.
func (i *observedIndexer) Bookmark(resourceVersion string) {
	i.Indexer.Bookmark(resourceVersion)
	i.probe.Observe(Event{Stage: StageStore, Type: Bookmark, ResourceVersion: resourceVersion})
}

// observedHandler reports each call of a handler, just before it.
type observedHandler struct {
	inner Handler
	probe *Probe
}

func (h *observedHandler) OnAdd(object metav1.Object, isInInitialList bool) {
	event := about(StageHandler, Add, object)
	event.Initial = isInInitialList
	h.probe.handle(event, func() { h.inner.OnAdd(object, isInInitialList) })
}

func (h *observedHandler) OnUpdate(before, after metav1.Object) {
	h.probe.handle(about(StageHandler, Update, after), func() { h.inner.OnUpdate(before, after) })
}

func (h *observedHandler) OnDelete(gone cache.DeletedObject[metav1.Object]) {
	var obj any = gone.OptionalObj
	if gone.FinalStateUnknown != nil {
		obj = *gone.FinalStateUnknown
	}
	h.probe.handle(about(StageHandler, Delete, obj), func() { h.inner.OnDelete(gone) })
}
