//go:build start

package deltas

import (
	"k8s.io/client-go/tools/cache"
)

// Apply applies one delta to the store and calls the handler. initial says whether the delta is of the first list.
func Apply(delta cache.Delta, store cache.Store, handler cache.ResourceEventHandler, initial bool) error {
	switch delta.Type {
	case cache.Added:
		if err := store.Add(delta.Object); err != nil {
			return err
		}
		handler.OnAdd(delta.Object, initial)
	}
	// TODO: the other types, and objects that the store has already.
	return nil
}
