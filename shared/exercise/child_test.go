package exercise

import (
	"testing"

	. "github.com/onsi/gomega"

	"example.com/workbook/shared/exercise/check"
)

func TestALongRunSaysHowFarItIs(t *testing.T) {
	g := NewWithT(t)
	g.Expect(soFar(nil)).To(BeEmpty())
	lines := []check.Line{
		{Begin: "a Pod starts"}, {Behaviour: "a Pod starts", OK: true},
		{Begin: "it is ready"}, {Behaviour: "it is ready"},
		{Begin: "it ends"},
	}
	g.Expect(soFar(lines)).To(Equal("so far 1 there, 1 missed; now: it ends"))
	g.Expect(soFar(append(lines, check.Line{Behaviour: "it ends", OK: true}, check.Line{End: true}))).To(BeEmpty())
}
