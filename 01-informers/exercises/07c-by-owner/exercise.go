//go:build start

package owner

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// ByOwner adds an index to the informer for Secrets. dependents returns the keys of the Secrets of an owner, and orphans those of
// the Secrets that have owners, none of which exists.
func ByOwner(owners, secrets cache.SharedIndexInformer) (
	dependents func(owner *corev1.ConfigMap) ([]string, error), orphans func() ([]string, error), err error,
) {
	err = secrets.AddIndexers(cache.Indexers{"by-owner": func(object any) ([]string, error) {
		// TODO: return what the Secret is found by.
		return nil, nil
	}})
	// TODO: find the dependents by the index, and the orphans.
	dependents = func(owner *corev1.ConfigMap) ([]string, error) { return nil, nil }
	orphans = func() ([]string, error) { return nil, nil }
	return dependents, orphans, err
}
