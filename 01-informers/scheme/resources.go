package main

import (
	"context"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"example.com/workbook/01-informers/internal/lesson"
)

// newMapper asks the server which resources it serves, once: the mapper does not know a CRD that is created later.
// restmapper.NewDeferredDiscoveryRESTMapperWithContext asks at its first use, and again after each ResetWithContext;
// over a memory cache it does not notice a new CRD by itself either.
func newMapper(ctx context.Context, config *rest.Config) apimeta.RESTMapperWithContext {
	client := lesson.Must(discovery.NewDiscoveryClientForConfig(config))
	cached := memory.NewMemCacheClientWithContext(client)
	groups := lesson.Must(restmapper.GetAPIGroupResourcesWithContext(ctx, cached))
	// The mapper knows plurals and singulars. The expander knows short names such as deploy.
	return restmapper.NewShortcutExpanderWithContext(restmapper.NewDiscoveryRESTMapperWithContext(groups), cached, nil)
}

// kindsAndResources reads the mapper in both directions.
func (t tables) kindsAndResources(ctx context.Context) {
	t.Printf("2. Kind to resource, and back: what this server serves\n\n")
	t.Printf("   %-24s %-9s %s\n", "kind", "scope", "resource")
	for _, kind := range []schema.GroupKind{
		{Kind: "Pod"}, {Group: "apps", Kind: "Deployment"}, {Group: "autoscaling", Kind: "HorizontalPodAutoscaler"},
		{Kind: "Endpoints"}, {Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
	} {
		mapping := lesson.Must(t.mapper.RESTMappingWithContext(ctx, kind))
		t.Printf("   %-24s %-9s %s\n", kind.Kind, mapping.Scope.Name(), resourcePath(mapping))
	}
	t.Printf("\n   No version was requested: these are the versions that the server prefers.\n")

	for _, word := range []string{"deployments", "deployment", "deploy"} {
		kind := lesson.Must(t.mapper.KindForWithContext(ctx, schema.GroupVersionResource{Resource: word}))
		t.Printf("   %-12s is %s %s\n", word, kind.GroupVersion(), kind.Kind)
	}
	_, err := t.mapper.KindForWithContext(ctx, schema.GroupVersionResource{Resource: "unicorns"})
	t.Printf("   %-12s %v\n", "unicorns", err)

	guessed, _ := apimeta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "Gateway"})
	t.Printf("   Do not guess plurals: the guess for Gateway is %q.\n\n", guessed.Resource)
}

// resourcePath returns the URL path of the objects. Only the core group, which has no name, is below /api.
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

// inSchemeAndOnServer shows that a kind can be in one of the tables and not in the other.
func (t tables) inSchemeAndOnServer(ctx context.Context) {
	t.Printf("4. The scheme belongs to the program, the mapper to the server\n\n")
	t.Printf("   %-52s %-10s %s\n", "kind", "in scheme", "on server")
	for _, kind := range []schema.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "extensions", Version: "v1beta1", Kind: "Deployment"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "unicorns.example.com", Version: "v1", Kind: "Unicorn"},
	} {
		_, err := t.mapper.RESTMappingWithContext(ctx, kind.GroupKind(), kind.Version)
		if !apimeta.IsNoMatchError(err) {
			lesson.Check(err)
		}
		t.Printf("   %-52s %-10t %t\n", kind.GroupVersion().String()+" "+kind.Kind, t.scheme.Recognizes(kind), err == nil)
	}
	t.Printf("\n   client-go still has types that no server serves any more, and a server serves kinds for which client-go\n")
	t.Printf("   has no types. Registering a type does not install a CRD, and installing a CRD does not register a type.\n\n")
}
