package main

import (
	"testing"

	. "github.com/onsi/gomega"

	"example.com/workbook/01-informers/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// The whole program, line by line: what it prints is what the chapters quote.
func TestProgram(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	out, err := testserver.Lesson(t, program)
	g.Expect(err).NotTo(HaveOccurred())
	for _, fact := range []struct{ name, line string }{
		{"one leads", "a leads: true; b leads: false, and knows of a"},
		{"nobody was before it", "the Lease: holder a, transitions 0"},
		{"the work ends first", "when a released the Lease, its work had ended: true"},
		{"a released Lease is free", "b had to wait for LeaseDuration (3s): false"},
		{"a transition is counted", "the Lease: holder b, transitions 1"},
		{"nothing is released", "b is gone, and the Lease still names b"},
		{"a Lease is waited out", "c had to wait for LeaseDuration (3s): true"},
		{"and counted", "the Lease: holder c, transitions 2"},
		{"the work ends before the next leads", "c's work had ended by then: true"},
		{"and counted again", "the Lease: holder d, transitions 3"},
		{"a precondition refuses", "with the resourceVersion that it has read: refused with a conflict: true\n   the state is now that of d"},
		{"nothing else does", "without one: accepted: true\n   the state is now that of c"},
	} {
		t.Run(fact.name, func(t *testing.T) {
			NewWithT(t).Expect(out).To(ContainSubstring(fact.line))
		})
	}
}
