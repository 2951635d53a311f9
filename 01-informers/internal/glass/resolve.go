package glass

import (
	"context"
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Resolve finds a resource by any name that kubectl accepts: plural, singular or short name, alone or followed by .GROUP or
// .VERSION.GROUP. The version of a short name does not count, as in kubectl. If several have the name, it returns the first in
// the API server's order. If the API server of an aggregated group is down, only its resources are missing.
func Resolve(ctx context.Context, config *rest.Config, name string) (*apimeta.RESTMapping, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a discovery client: %w", err)
	}
	groups, err := restmapper.GetAPIGroupResourcesWithContext(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("discovering the resources of the cluster: %w", err)
	}
	mapper := restmapper.NewShortcutExpanderWithContext(restmapper.NewDiscoveryRESTMapperWithContext(groups), client, nil)
	// A name with two dots or more may be NAME.VERSION.GROUP, or NAME.GROUP with a dot in the group.
	versioned, resource := schema.ParseResourceArg(strings.ToLower(name))
	var kind schema.GroupVersionKind
	if versioned != nil {
		kind, _ = mapper.KindForWithContext(ctx, *versioned)
	}
	if kind.Empty() {
		if kind, err = mapper.KindForWithContext(ctx, resource.WithVersion("")); err != nil {
			return nil, fmt.Errorf("finding the resource %q: %w", name, err)
		}
	}
	return mapper.RESTMappingWithContext(ctx, kind.GroupKind(), kind.Version)
}

// Namespaced reports whether the objects of a resource are in namespaces.
func Namespaced(resource *apimeta.RESTMapping) bool {
	return resource.Scope.Name() == apimeta.RESTScopeNameNamespace
}

// CheckAccess lists and watches once, as the informer does, so that a missing permission or a cluster that is down is an
// error at the start, and not only a line in the log every half minute. It requests metadata only.
func CheckAccess(ctx context.Context, config *rest.Config, resource *apimeta.RESTMapping, namespace string) error {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a metadata client: %w", err)
	}
	objects := client.Resource(resource.Resource).Namespace(namespace)
	list, err := objects.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return fmt.Errorf("listing %s: %w", resource.Resource.GroupResource(), err)
	}
	watch, err := objects.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, TimeoutSeconds: new(int64(1))})
	if err != nil {
		return fmt.Errorf("watching %s: %w", resource.Resource.GroupResource(), err)
	}
	watch.Stop()
	return nil
}
