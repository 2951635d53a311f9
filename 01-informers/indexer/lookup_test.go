package main

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// Counted, not timed: the index looks at what it finds, the scan at everything.
func TestAnIndexedLookUpLooksAtAHundredthOfTheObjects(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	indexer, err := newFleet()
	g.Expect(err).NotTo(HaveOccurred())
	without, looked := scan(indexer, "node-7")
	with, err := lookUp(indexer, "node-7")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(with).To(ConsistOf(without), "both find the same")
	g.Expect(looked).To(Equal(fleetSize))
	g.Expect(looked / len(with)).To(Equal(nodes))
}

// The time follows: fifty times and more on an idle machine. Three is left to a busy one.
func TestAnIndexedLookUpIsFaster(t *testing.T) {
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
	g.Expect(writeCosts()).To(Equal(map[string]int{
		"Add": 1, "Update": 2, "Delete": 1, // the values of the old object are not kept: they are worked out again
		"Get": 0, "ByIndex": 0, "Index": 1,
	}))
}

func BenchmarkLookUp(b *testing.B) {
	indexer, err := newFleet()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("without", func(b *testing.B) {
		for b.Loop() {
			scan(indexer, "node-7")
		}
	})
	b.Run("with", func(b *testing.B) {
		for b.Loop() {
			if _, err := lookUp(indexer, "node-7"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("key", func(b *testing.B) {
		for b.Loop() {
			if _, found, _ := indexer.GetByKey("ns-7/pod-7"); !found {
				b.Fatal("not found")
			}
		}
	})
	b.Run("update", func(b *testing.B) {
		pod := indexer.List()[0].(*corev1.Pod)
		for b.Loop() {
			if err := indexer.Update(pod); err != nil {
				b.Fatal(err)
			}
		}
	})
}
