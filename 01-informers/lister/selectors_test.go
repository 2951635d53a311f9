package main

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/labels"
	listerscorev1 "k8s.io/client-go/listers/core/v1"
)

// The study journal measures the time of List with a selector, with and without an index of the label. The two
// cannot differ: ListAll and ListAllByNamespace never use that index. Every count is the same.
func TestSeedQuestion_AListerIgnoresLabelIndexes(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	costs, err := selectorCosts()
	g.Expect(err).NotTo(HaveOccurred())
	for i := range costs {
		costs[i].query = ""
	}
	all := cost{found: fleetSize / apps, compared: fleetSize, scans: 1}
	oneNamespace := cost{found: 100, compared: fleetSize / namespaces, byNamespace: 1}
	g.Expect(costs).To(Equal([]cost{
		all, all, // without the index of the label, and with it
		oneNamespace, oneNamespace,
		{found: fleetSize / apps, byLabel: 1}, // ByIndex: one lookup, no labels compared
	}))
}

// The informers of a factory have that index. An informer that you create yourself has it only if you add it.
// Without it, List examines every object and logs a warning.
func TestWithoutTheNamespaceIndexANamespaceListerScans(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	cost, err := measure("", listNamespace)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cost.scans).To(Equal(1))
	g.Expect(cost.found).To(Equal(100), "the result is correct")
}

func TestListOfEverythingAndOfNothing(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		selector     labels.Selector
		found, scans int
	}{
		"everything": {labels.Everything(), fleetSize, 1},
		"nothing":    {labels.Nothing(), 0, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			indexer, err := newFleet(byNamespace)
			g.Expect(err).NotTo(HaveOccurred())
			pods, err := listerscorev1.NewPodLister(indexer).List(test.selector)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pods).To(HaveLen(test.found))
			g.Expect(indexer.scans).To(Equal(test.scans))
		})
	}
}

// Get is one lookup in a map, independent of the number of objects.
func TestGetReadsOneKey(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	indexer, err := newFleet(byNamespace)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(listerscorev1.NewPodLister(indexer).Pods("ns-7").Get("pod-7")).To(HaveField("Name", "pod-7"))
	g.Expect(indexer.keys).To(Equal(1))
	g.Expect([]int{indexer.scans, indexer.namespaceIndex, indexer.otherIndexes}).To(HaveEach(0))
}
