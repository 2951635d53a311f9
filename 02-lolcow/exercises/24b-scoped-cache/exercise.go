//go:build start

package scopedcache

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options are those of the manager's cache, and of its client, which reads from the cache.
func Options() (cache.Options, client.Options) {
	// TODO: the cache holds everything.
	return cache.Options{}, client.Options{}
}
