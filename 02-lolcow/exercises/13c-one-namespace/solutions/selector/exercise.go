package onenamespace

import (
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// CacheOptions are those of the operator that serves one namespace.
func CacheOptions(namespace string) cache.Options {
	return cache.Options{DefaultFieldSelector: fields.OneTermEqualSelector("metadata.namespace", namespace)}
}
