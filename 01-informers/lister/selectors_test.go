package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

// The study journal measures the time of List with a selector, with and without an index of the label. The two
// cannot differ: ListAll and ListAllByNamespace never use that index. Every count is the same.
func TestSeedQuestion_AListerIgnoresLabelIndexes(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	costs := selectorCosts()
	for i := range costs {
		costs[i].query = ""
	}
	all := cost{found: fleetSize / apps, compared: fleetSize, calls: calls{scans: 1}}
	oneNamespace := cost{found: 100, compared: fleetSize / namespaces, calls: calls{byNamespace: 1}}
	g.Expect(costs).To(Equal([]cost{
		all, all, // without the index of the label, and with it
		oneNamespace, oneNamespace,
		{found: fleetSize / apps, calls: calls{byLabel: 1}}, // ByIndex: one lookup, no labels compared
	}))
}

// The informers of a factory have that index. An informer that you create yourself has it only if you add it.
// Without it, List examines every object and logs a warning.
func TestWithoutTheNamespaceIndexANamespaceListerScans(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	cost := measure("", listNamespace)
	g.Expect(cost.scans).To(Equal(1))
	g.Expect(cost.found).To(Equal(100), "the result is correct")
}
