// Package sixmutants is exercise 23c: tests that fail with each of six mutants of an operator, and with nothing that is right.
package sixmutants

import (
	"example.com/workbook/02-lolcow/exercises/internal/lab"
	"example.com/workbook/02-lolcow/exercises/internal/subject"
	"example.com/workbook/02-lolcow/exercises/internal/tests"
	"example.com/workbook/shared/exercise/check"
)

// Check runs the reader's tests with each operator.
func Check(t *check.T, work check.Work[check.Files]) {
	var binary *tests.Binary
	ok := t.Behaviour("the tests compile", func(b *check.B) { binary = tests.Build(b, work.Dir) })
	if !ok {
		return
	}
	defer binary.Remove()
	with := func(b *check.B, operator string) tests.Verdict {
		return binary.Run(b, lab.Variable+"="+operator)
	}
	t.Behaviour("the tests pass with operators that are right", func(b *check.B) {
		with(b, subject.Plain).ExpectPass("this operator keeps all promises")
		with(b, subject.Renames).ExpectPass("an operator with other labels, annotations and names keeps all promises")
		with(b, subject.Applies).ExpectPass("an operator that writes with server-side apply, and asks for another reconciliation after an hour, " +
			"keeps all promises")
	})
	for _, mutant := range []struct{ name, operator, text string }{
		{"they kill the first mutant: a change of the greeting does not arrive", subject.Once,
			"the operator writes the Deployment at its creation, and never again"},
		{"they kill the second: all Deployments select the same Pods", subject.SameSelector,
			"the operator gives the Deployments of all Lolcows the same selector"},
		{"they kill the third: a Deployment that is not owned is changed", subject.Adopts,
			"the operator overwrites a Deployment of the same name, whatever its owner is"},
		{"they kill the fourth: there is a write in each reconciliation", subject.Counts,
			"the operator counts its reconciliations in a label of the Deployment"},
		{"they kill the fifth: no error is returned", subject.Silent,
			"the API server has rejected the Deployment, and Reconcile returns nil"},
		{"they kill the sixth: a deleted Deployment is not noticed", subject.Blind,
			"the operator does not watch Deployments"},
	} {
		t.Behaviour(mutant.name, func(b *check.B) {
			with(b, mutant.operator).ExpectFailure(mutant.text)
		})
	}
}
