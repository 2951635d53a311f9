package getter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
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
	t := &table{kinds: kinds}
	return func(ctx context.Context, what, namespace, name string) (*unstructured.Unstructured, error) {
		found, err := t.find(strings.ToLower(what))
		if err != nil {
			return nil, err
		}
		if !found.Namespaced {
			namespace = ""
		}
		resource := schema.GroupVersionResource{Group: found.Group, Version: found.Version, Resource: found.Name}
		return objects.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	}, nil
}

// table is what the API server had when it was last asked.
type table struct {
	kinds discovery.DiscoveryInterface

	mu    sync.Mutex
	known []metav1.APIResource
}

func (t *table) find(what string) (metav1.APIResource, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	wanted := schema.ParseGroupResource(what)
	matches := func(r metav1.APIResource) bool {
		return (wanted.Group == "" || wanted.Group == r.Group) &&
			slices.Contains(append(r.ShortNames, r.Name, r.SingularName, strings.ToLower(r.Kind)), wanted.Resource)
	}
	if i := slices.IndexFunc(t.known, matches); i >= 0 {
		return t.known[i], nil
	}
	lists, err := t.kinds.ServerPreferredResources()
	if err != nil {
		return metav1.APIResource{}, err
	}
	t.known = nil
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return metav1.APIResource{}, err
		}
		for _, r := range list.APIResources {
			r.Group, r.Version = gv.Group, gv.Version
			t.known = append(t.known, r)
		}
	}
	if i := slices.IndexFunc(t.known, matches); i >= 0 {
		return t.known[i], nil
	}
	return metav1.APIResource{}, fmt.Errorf("the API server has no %q", what)
}
