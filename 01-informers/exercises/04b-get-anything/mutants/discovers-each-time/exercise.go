package getter

import (
	"context"
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// NewGetter returns a function that gets an object of any kind.
func NewGetter(config *rest.Config) (func(ctx context.Context, what, namespace, name string) (*unstructured.Unstructured, error), error) {
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	cached := memory.NewMemCacheClient(kinds)
	tables := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	mapper := restmapper.NewShortcutExpander(tables, cached, nil)
	return func(ctx context.Context, what, namespace, name string) (*unstructured.Unstructured, error) {
		tables.Reset()
		mapping, err := find(mapper, what)
		if err != nil {
			return nil, fmt.Errorf("finding %q: %w", what, err)
		}
		if mapping.Scope.Name() == apimeta.RESTScopeNameRoot {
			namespace = ""
		}
		return objects.Resource(mapping.Resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	}, nil
}

// find looks up what is meant: a plural, a singular or a short name, perhaps with a group.
func find(mapper apimeta.RESTMapper, what string) (*apimeta.RESTMapping, error) {
	resource, err := mapper.ResourceFor(schema.ParseGroupResource(strings.ToLower(what)).WithVersion(""))
	if err != nil {
		return nil, err
	}
	kind, err := mapper.KindFor(resource)
	if err != nil {
		return nil, err
	}
	return mapper.RESTMapping(kind.GroupKind(), kind.Version)
}
