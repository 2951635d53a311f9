package onenamespace

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// CacheOptions are those of the operator that serves one namespace.
func CacheOptions(namespace string) cache.Options {
	return cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}}
}
