// Package faults is exercise 25c: a suite that finds what only a crash, or a look after each write, shows.
package faults

import (
	"example.com/workbook/02-lolcow/exercises/internal/lab"
	"example.com/workbook/02-lolcow/exercises/internal/subject"
	"example.com/workbook/02-lolcow/exercises/internal/tests"
	"example.com/workbook/shared/exercise/check"
)

// Check runs the reader's suite with each operator.
func Check(t *check.T, work check.Work[check.Files]) {
	var binary *tests.Binary
	ok := t.Behaviour("the suite compiles", func(b *check.B) { binary = tests.Build(b, work.Dir) })
	if !ok {
		return
	}
	defer binary.Remove()
	with := func(b *check.B, operator string) tests.Verdict {
		return binary.Run(b, lab.Variable+"="+operator)
	}
	t.Behaviour("the suite is silent with operators that are right", func(b *check.B) {
		with(b, subject.Named).ExpectPass("an operator whose ConfigMap has the name of the Lolcow is right, " +
			"also with another ConfigMap, which the Lolcow does not own")
		with(b, subject.Listed).ExpectPass("an operator that looks for a ConfigMap that the Lolcow owns, whatever its name, is right")
	})
	for _, bug := range []struct{ name, operator, text string }{
		{"it finds what is forgotten in a crash", subject.Remembers,
			"the operator creates a ConfigMap, crashes before it has written down its name, and creates another one"},
		{"it finds a gap between two writes", subject.Replaces,
			"the operator deletes its ConfigMap when the greeting changes, and creates it again"},
		{"it finds two between two writes", subject.Overlaps,
			"the operator creates another ConfigMap when the greeting changes, and deletes the first one afterwards"},
		{"it finds what is reported, and was not done", subject.Reports,
			"the operator writes observedGeneration, crashes before it writes the ConfigMap, and never does it"},
	} {
		t.Behaviour(bug.name, func(b *check.B) { with(b, bug.operator).ExpectFailure(bug.text) })
	}
}
