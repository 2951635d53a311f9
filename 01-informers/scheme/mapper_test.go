package main

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/lesson"
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

// The test maps every resource of the server to its kind and back.
func TestMapperMapsKindToResourceAndResourceToKind(t *testing.T) {
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

func TestMapperKnowsInstalledCRDs(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.Expect(mapper(t).KindForWithContext(t.Context(), schema.GroupVersionResource{Resource: "foos"})).
		To(Equal(v1alpha1.SchemeGroupVersion.WithKind("Foo")))
}

// A mapper does not learn of a CRD that is installed later. A deferred one does, once the program resets it.
func TestMapperDoesNotLearnOfLaterCRDs(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	client, err := discovery.NewDiscoveryClientForConfig(testserver.Config(t))
	g.Expect(err).NotTo(HaveOccurred())
	deferred := restmapper.NewDeferredDiscoveryRESTMapperWithContext(memory.NewMemCacheClientWithContext(client))
	fixed := mapper(t)
	group := testserver.Namespace(t) + ".example.com"
	notes := lesson.Notes(group)
	_, err = deferred.KindForWithContext(t.Context(), notes)
	g.Expect(apimeta.IsNoMatchError(err)).To(BeTrue(), "%v", err)

	crds, err := dynamic.NewForConfig(testserver.Config(t))
	g.Expect(err).NotTo(HaveOccurred())
	_, err = crds.Resource(lesson.CRDs).Create(t.Context(), lesson.NoteCRD(group), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() error {
		_, err := client.ServerResourcesForGroupVersionWithContext(t.Context(), group+"/v1")
		return err
	}).WithTimeout(lesson.Patience).Should(Succeed())
	for _, mapper := range []apimeta.RESTMapperWithContext{fixed, deferred} {
		_, err = mapper.KindForWithContext(t.Context(), notes)
		g.Expect(apimeta.IsNoMatchError(err)).To(BeTrue(), "%v", err)
	}
	// The server updates the list of all groups a moment after the document of this group.
	g.Eventually(func(g Gomega) {
		deferred.ResetWithContext(t.Context())
		g.Expect(deferred.KindForWithContext(t.Context(), notes)).To(HaveField("Kind", "Note"))
	}).WithTimeout(lesson.Patience).Should(Succeed())
}
