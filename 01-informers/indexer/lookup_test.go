package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

// On an idle machine it is at least 50 times faster. The test asks for 3, because a busy machine is slower.
func TestAnIndexedLookupIsFaster(t *testing.T) {
	g := NewWithT(t)
	indexer, err := newFleet()
	g.Expect(err).NotTo(HaveOccurred())
	without, with, err := measure(indexer, "node-7")
	g.Expect(err).NotTo(HaveOccurred())
	t.Logf("%v without an index, %v with: %.0f times faster", without, with, float64(without)/float64(with))
	g.Expect(without).To(BeNumerically(">", 3*with))
}

func TestWhatAnIndexCosts(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.Expect(countCalls()).To(Equal(map[string]int{
		"Add": 1, "Update": 2, "Delete": 1, // The store does not keep the values of the old object: it calls the function again.
		"Get": 0, "ByIndex": 0, "Index": 1,
	}))
}
