package main

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/testserver"
)

func mapper(t *testing.T) apimeta.RESTMapperWithContext {
	t.Helper()
	mapper, err := newMapper(t.Context(), testserver.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	return mapper
}

// Every resource of the server, there and back.
func TestKindAndResourceLeadToEachOther(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	mapper := mapper(t)
	lists, err := testserver.Client(t).Discovery().ServerPreferredResourcesWithContext(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	number := 0
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		g.Expect(err).NotTo(HaveOccurred())
		for _, resource := range list.APIResources {
			if strings.Contains(resource.Name, "/") {
				continue
			}
			number++
			kind := version.WithKind(resource.Kind)
			g.Expect(mapper.KindForWithContext(t.Context(), version.WithResource(resource.Name))).To(Equal(kind))
			mapping, err := mapper.RESTMappingWithContext(t.Context(), kind.GroupKind(), kind.Version)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(mapping.Resource).To(Equal(version.WithResource(resource.Name)))
			scope := apimeta.RESTScopeNameRoot
			if resource.Namespaced {
				scope = apimeta.RESTScopeNameNamespace
			}
			g.Expect(mapping.Scope.Name()).To(Equal(scope))
		}
	}
	g.Expect(number).To(BeNumerically(">", 50))
}

func TestMapperKnowsCustomResourcesThatAreInstalled(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.Expect(mapper(t).KindForWithContext(t.Context(), schema.GroupVersionResource{Resource: "foos"})).
		To(Equal(v1alpha1.GroupVersion.WithKind("Foo")))
}

// Adding a type to a scheme tells the server nothing.
func TestRegisteringATypeInstallsNoCRD(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	unknown := schema.GroupVersionKind{Group: "unicorns.example.com", Version: "v1", Kind: "Unicorn"}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(unknown, &v1alpha1.Foo{})
	g.Expect(scheme.Recognizes(unknown)).To(BeTrue())

	_, err := mapper(t).RESTMappingWithContext(t.Context(), unknown.GroupKind(), unknown.Version)
	g.Expect(apimeta.IsNoMatchError(err)).To(BeTrue(), "%v", err)
	err = testserver.Client(t).CoreV1().RESTClient().Get().AbsPath("/apis/unicorns.example.com/v1/unicorns").Do(t.Context()).Error()
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
}

// A kind that is installed later is not in a mapper, not even in a deferred one: somebody has to reset it.
func TestMapperIsOfTheMomentOfItsDiscovery(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	client, err := discovery.NewDiscoveryClientForConfig(testserver.Config(t))
	g.Expect(err).NotTo(HaveOccurred())
	deferred := restmapper.NewDeferredDiscoveryRESTMapperWithContext(memory.NewMemCacheClientWithContext(client))
	fixed := mapper(t)
	group := testserver.Namespace(t) + ".example.com"
	notes := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "notes"}
	_, err = deferred.KindForWithContext(t.Context(), notes)
	g.Expect(apimeta.IsNoMatchError(err)).To(BeTrue(), "%v", err)

	install(t, group)
	g.Eventually(func() error {
		_, err := client.ServerResourcesForGroupVersionWithContext(t.Context(), group+"/v1")
		return err
	}).WithTimeout(10 * time.Second).Should(Succeed())
	for _, mapper := range []apimeta.RESTMapperWithContext{fixed, deferred} {
		_, err = mapper.KindForWithContext(t.Context(), notes)
		g.Expect(apimeta.IsNoMatchError(err)).To(BeTrue(), "%v", err)
	}
	// The document of all groups follows the group's own a moment later.
	g.Eventually(func(g Gomega) {
		deferred.ResetWithContext(t.Context())
		g.Expect(deferred.KindForWithContext(t.Context(), notes)).To(HaveField("Kind", "Note"))
	}).WithTimeout(10 * time.Second).Should(Succeed())
}

func install(t *testing.T, group string) {
	t.Helper()
	client, err := dynamic.NewForConfig(testserver.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).
		Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": "notes." + group},
			"spec": map[string]any{
				"group": group, "scope": "Namespaced",
				"names": map[string]any{"plural": "notes", "kind": "Note"},
				"versions": []any{map[string]any{
					"name": "v1", "served": true, "storage": true,
					"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
				}},
			},
		}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}
