package onenamespace

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// CacheOptions are those of the operator that serves one namespace.
func CacheOptions(namespace string) cache.Options {
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		&v1alpha1.Lolcow{}: {Namespaces: map[string]cache.Config{namespace: {}}},
	}}
}
