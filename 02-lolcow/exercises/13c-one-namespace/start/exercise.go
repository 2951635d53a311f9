//go:build start

package onenamespace

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// CacheOptions are those of the operator that serves one namespace.
func CacheOptions(namespace string) cache.Options {
	// TODO: it serves all namespaces. Its permissions are in role.yaml.
	return cache.Options{}
}
