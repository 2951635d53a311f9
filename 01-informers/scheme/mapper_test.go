package main

import (
	"testing"

	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"example.com/workbook/01-informers/internal/lesson"
	"example.com/workbook/01-informers/internal/testserver"
)

// A mapper does not learn of a CRD that is installed later. A deferred one does, once the program resets it.
func TestMapperDoesNotLearnOfLaterCRDs(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	client, err := discovery.NewDiscoveryClientForConfig(testserver.Config(t))
	g.Expect(err).NotTo(HaveOccurred())
	deferred := restmapper.NewDeferredDiscoveryRESTMapperWithContext(memory.NewMemCacheClientWithContext(client))
	fixed := newMapper(t.Context(), testserver.Config(t))
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
