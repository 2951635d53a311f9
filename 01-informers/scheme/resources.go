package main

import (
	"context"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"example.com/workbook/01-informers/internal/lesson"
)

// newMapper asks the server what it serves. The answer is true of this server at this moment: a CRD that is
// installed later is not in it. restmapper.NewDeferredDiscoveryRESTMapperWithContext asks only when it is
// first used, and again after each ResetWithContext: over a memory cache it does not notice by itself.
func newMapper(ctx context.Context, config *rest.Config) (apimeta.RESTMapperWithContext, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	cached := memory.NewMemCacheClientWithContext(client)
	groups, err := restmapper.GetAPIGroupResourcesWithContext(ctx, cached)
	if err != nil {
		return nil, err
	}
	// The mapper knows plurals and singulars; short names such as deploy are the expander's.
	return restmapper.NewShortcutExpanderWithContext(restmapper.NewDiscoveryRESTMapperWithContext(groups), cached, nil), nil
}

// kindsAndResources reads the mapper in both directions.
func kindsAndResources(ctx context.Context, world *lesson.World, mapper apimeta.RESTMapperWithContext) error {
	world.Printf("2. Kind to resource, and back: what this server serves\n\n")
	world.Printf("   %-24s %-9s %s\n", "kind", "scope", "resource")
	for _, kind := range []schema.GroupKind{
		{Kind: "Pod"}, {Group: "apps", Kind: "Deployment"}, {Group: "autoscaling", Kind: "HorizontalPodAutoscaler"},
		{Kind: "Endpoints"}, {Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
	} {
		mapping, err := mapper.RESTMappingWithContext(ctx, kind)
		if err != nil {
			return err
		}
		world.Printf("   %-24s %-9s %s\n", kind.Kind, mapping.Scope.Name(), resourcePath(mapping))
	}
	world.Printf("\n   The versions are the server's choice: no version was asked for.\n")

	for _, word := range []string{"deployments", "deployment", "deploy"} {
		kind, err := mapper.KindForWithContext(ctx, schema.GroupVersionResource{Resource: word})
		if err != nil {
			return err
		}
		world.Printf("   %-12s is %s %s\n", word, kind.GroupVersion(), kind.Kind)
	}
	_, err := mapper.KindForWithContext(ctx, schema.GroupVersionResource{Resource: "unicorns"})
	world.Printf("   %-12s %v\n", "unicorns", err)

	guessed, _ := apimeta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "Gateway"})
	world.Printf("   Do not guess plurals: the guess for Gateway is %q.\n\n", guessed.Resource)
	return nil
}

// resourcePath is where the server keeps the objects. The core group is older than groups are, and has a
// path of its own.
func resourcePath(mapping *apimeta.RESTMapping) string {
	path := "/apis/" + mapping.Resource.GroupVersion().String()
	if mapping.Resource.Group == "" {
		path = "/api/" + mapping.Resource.Version
	}
	if mapping.Scope.Name() == apimeta.RESTScopeNameNamespace {
		path += "/namespaces/NAMESPACE"
	}
	return path + "/" + mapping.Resource.Resource
}

// twoTables shows that scheme and server know nothing of each other.
func twoTables(ctx context.Context, world *lesson.World, scheme *runtime.Scheme, mapper apimeta.RESTMapperWithContext) error {
	world.Printf("4. The scheme is the program's, the mapper the server's\n\n")
	world.Printf("   %-52s %-10s %s\n", "kind", "in scheme", "on server")
	for _, kind := range []schema.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "extensions", Version: "v1beta1", Kind: "Deployment"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "unicorns.example.com", Version: "v1", Kind: "Unicorn"},
	} {
		_, err := mapper.RESTMappingWithContext(ctx, kind.GroupKind(), kind.Version)
		if err != nil && !apimeta.IsNoMatchError(err) {
			return err
		}
		world.Printf("   %-52s %-10t %t\n", kind.GroupVersion().String()+" "+kind.Kind, scheme.Recognizes(kind), err == nil)
	}
	world.Printf("\n   client-go still has types that no server serves any more; and a server has kinds that client-go has\n")
	world.Printf("   no types for. Registering a type installs no CRD, and installing a CRD registers no type.\n\n")
	return nil
}
