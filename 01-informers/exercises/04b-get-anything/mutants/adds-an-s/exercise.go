package getter

import (
	"context"
	"strings"

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
	return func(ctx context.Context, what, namespace, name string) (*unstructured.Unstructured, error) {
		wanted := schema.ParseGroupResource(strings.ToLower(what))
		if !strings.HasSuffix(wanted.Resource, "s") {
			wanted.Resource += "s"
		}
		lists, err := kinds.ServerPreferredResources()
		if err != nil {
			return nil, err
		}
		resource := wanted.WithVersion("v1")
		for _, list := range lists {
			gv, err := schema.ParseGroupVersion(list.GroupVersion)
			if err != nil {
				return nil, err
			}
			for _, r := range list.APIResources {
				if r.Name == wanted.Resource && (wanted.Group == "" || wanted.Group == gv.Group) {
					resource = gv.WithResource(r.Name)
					if !r.Namespaced {
						namespace = ""
					}
				}
			}
		}
		return objects.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	}, nil
}
