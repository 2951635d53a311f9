package deltas

import (
	"fmt"

	"k8s.io/client-go/tools/cache"
)

// Apply applies one delta to the store and calls the handler. initial says whether the delta is of the first list.
func Apply(delta cache.Delta, store cache.Store, handler cache.ResourceEventHandler, initial bool) error {
	switch delta.Type {
	case cache.Added, cache.Updated:
		return put(delta.Object, store, handler, initial)
	case cache.Deleted:
		if err := store.Delete(delta.Object); err != nil {
			return err
		}
		handler.OnDelete(delta.Object)
		return nil
	case cache.ReplacedAll:
		info, ok := delta.Object.(cache.ReplacedAllInfo)
		if !ok {
			return fmt.Errorf("%s has a %T", delta.Type, delta.Object)
		}
		return replace(info, store, handler, initial)
	}
	return fmt.Errorf("unknown type %s", delta.Type)
}

// put stores one object. Whether that is an addition, the store knows.
func put(object any, store cache.Store, handler cache.ResourceEventHandler, initial bool) error {
	old, known, err := store.Get(object)
	if err != nil {
		return err
	}
	if err := store.Update(object); err != nil {
		return err
	}
	if known {
		handler.OnUpdate(old, object)
	} else {
		handler.OnAdd(object, initial)
	}
	return nil
}

// replace makes the list the content of the store.
func replace(info cache.ReplacedAllInfo, store cache.Store, handler cache.ResourceEventHandler, initial bool) error {
	before := map[string]any{}
	for _, key := range store.ListKeys() {
		object, _, err := store.GetByKey(key)
		if err != nil {
			return err
		}
		before[key] = object
	}
	if err := store.Replace(info.Objects, info.ResourceVersion); err != nil {
		return err
	}
	for _, object := range info.Objects {
		key, err := cache.MetaNamespaceKeyFunc(object)
		if err != nil {
			return err
		}
		if old, known := before[key]; known {
			handler.OnUpdate(old, object)
		} else {
			handler.OnAdd(object, initial)
		}
		delete(before, key)
	}
	for key, object := range before {
		handler.OnDelete(cache.DeletedFinalStateUnknown{Key: key, Obj: object})
	}
	return nil
}
