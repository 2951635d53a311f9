package exercise

import (
	"fmt"
	"strings"
)

// What an exercise has to have.
const (
	longestTask   = 200
	hintsExpected = 3
	fewestMutants = 2
	mostMutants   = 10
)

// String says what came out, as the reader would be told.
func (o Outcome) String() string {
	var b strings.Builder
	for _, name := range o.Failed {
		fmt.Fprintf(&b, "✗ %s\n", name)
	}
	if o.Died != "" {
		fmt.Fprintf(&b, "died by %s during %q\n", o.Died, o.During)
	}
	if o.Message != "" {
		fmt.Fprintf(&b, "  %s\n", o.Message)
	}
	if b.Len() == 0 {
		return "✓"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// faultsOfForm are what an exercise lacks, whatever its check says.
func faultsOfForm(e Exercise) []string {
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if e.Title == "" {
		fault("exercise.json has no title")
	}
	if task, err := e.Task(); err != nil {
		fault("%v", err)
	} else if n := len(strings.Fields(task)); n > longestTask {
		fault("the task has %d words; at most %d are read", n, longestTask)
	}
	if hints, err := e.Hints(); err != nil || len(hints) != hintsExpected {
		fault("the README has %d hints, and not %d", len(hints), hintsExpected)
	}
	if _, err := e.Start(); err != nil {
		fault("%v", err)
	}
	if solutions, err := e.Solutions(); err != nil || len(solutions) == 0 {
		fault("no solution: %v", err)
	}
	mutants, err := e.Mutants()
	if err != nil || len(mutants) < fewestMutants || len(mutants) > mostMutants {
		fault("%d mutants, and not %d to %d: %v", len(mutants), fewestMutants, mostMutants, err)
	}
	golden, err := e.Golden()
	if err != nil {
		fault("%v", err)
	}
	return append(faults, faultsOfGolden(golden, mutants)...)
}

// faultsOfGolden are what the golden file does not tell.
func faultsOfGolden(golden Golden, mutants []Mutant) []string {
	var faults []string
	for _, m := range mutants {
		if outcome := golden.Mutants[m.Name]; len(outcome.Failed) == 0 && outcome.Died == "" {
			faults = append(faults, fmt.Sprintf("golden.json does not say how the mutant %s fails", m.Name))
		}
	}
	seen := map[string]string{}
	for name, outcome := range golden.Mutants {
		text := outcome.String()
		if other := seen[text]; other != "" {
			faults = append(faults, fmt.Sprintf("the check says the same of the mutants %s and %s: it cannot tell the reader which one it is", name, other))
		}
		seen[text] = name
	}
	return faults
}
