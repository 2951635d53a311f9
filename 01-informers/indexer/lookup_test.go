package main

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// On an idle machine it is at least 50 times faster. The test asks for 3, because a busy machine is slower.
func TestAnIndexedLookupIsFaster(t *testing.T) {
	g := NewWithT(t)
	without, with := measure(newFleet(), "node-7")
	t.Logf("%v without an index, %v with: %.0f times faster", without, with, float64(without)/float64(with))
	g.Expect(without).To(BeNumerically(">", 3*with))
}

// The store does not keep the values of the old object: for an update it calls the function twice.
func TestWhatAnIndexCosts(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	calls := 0
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.TypedIndexersToIndexers(cache.TypedIndexers[*corev1.Pod]{
		byNode: func(pod *corev1.Pod) ([]string, error) {
			calls++
			return nodeOf(pod)
		},
	}))
	g.Expect(indexer.Add(pod("shop", "web-0", onNode("node-1")))).To(Succeed())
	g.Expect(calls).To(Equal(1))
	g.Expect(indexer.Update(pod("shop", "web-0", onNode("node-2")))).To(Succeed())
	g.Expect(calls).To(Equal(3))
	g.Expect(indexer.ByIndex(byNode, "node-2")).To(HaveLen(1))
	g.Expect(calls).To(Equal(3), "a lookup calls none")
}
