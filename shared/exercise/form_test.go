package exercise

import (
	"testing"

	. "github.com/onsi/gomega"
)

// What can be said of the workbook's exercises without running one. A mutant has to be made again when its solution changes.
func TestTheFormOfAllExercises(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	exercises, err := List("../..")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(exercises).NotTo(BeEmpty())
	for _, e := range exercises {
		t.Run(e.ID, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			g.Expect(faultsOfForm(e)).To(BeEmpty())
			mutants, err := e.Mutants()
			g.Expect(err).NotTo(HaveOccurred())
			folders := folders{e.Module(): {dir: t.TempDir()}}
			for _, m := range mutants {
				_, err := folders.write(t.Context(), e, m)
				g.Expect(err).NotTo(HaveOccurred())
			}
		})
	}
}
