package exercise

import (
	"fmt"
	"strings"
)

// What an exercise has to have. The task of a capstone is a specification of one page, without hints.
const (
	longestTask          = 200
	longestSpecification = 600
	hintsExpected        = 3
	fewestMutants        = 2
	mostMutants          = 12
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
		fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(o.Message, "\n", "\n  "))
	}
	if b.Len() == 0 {
		return "✓"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// details is the Outcome with what was seen in place of each missing behaviour: what explains a run that comes to something else
// than the others.
func (r Result) details() string {
	var lines []string
	for _, behaviour := range r.Behaviours {
		if !behaviour.OK {
			lines = append(lines, Outcome{Failed: []string{behaviour.Name}, Message: constant(behaviour.Seen)}.String())
		}
	}
	if r.Died != nil {
		lines = append(lines, Outcome{Died: r.Died.Kind, During: r.Died.Behaviour, Message: constant(r.Died.Message)}.String())
	}
	if len(lines) == 0 {
		return Outcome{}.String()
	}
	return strings.Join(lines, "\n")
}

// faultsOfForm are what an exercise lacks, whatever its check says.
func faultsOfForm(e Exercise) []string {
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if e.Title == "" {
		fault("exercise.json has no title")
	}
	longest, hintsWanted, fewest := longestTask, hintsExpected, fewestMutants
	if e.IsCapstone() {
		longest, hintsWanted, fewest = longestSpecification, 0, 3
	}
	if task, err := e.Task(); err != nil {
		fault("%v", err)
	} else if n := len(strings.Fields(task)); n > longest {
		fault("the task has %d words; at most %d are read", n, longest)
	}
	if hints, err := e.Hints(); err != nil {
		fault("%v", err)
	} else if len(hints) != hintsWanted {
		fault("the README has %d hints, and not %d", len(hints), hintsWanted)
	}
	if _, err := e.Start(); err != nil {
		fault("%v", err)
	}
	if solutions, err := e.Solutions(); err != nil {
		fault("%v", err)
	} else if len(solutions) == 0 {
		fault("no solution")
	}
	mutants, err := e.Mutants()
	if err != nil {
		fault("%v", err)
	} else if len(mutants) < fewest || len(mutants) > mostMutants {
		fault("%d mutants, and not %d to %d", len(mutants), fewest, mostMutants)
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
	// What comes to the same as the start has no diagnosis.
	seen := map[string]string{golden.Start.String(): "the start"}
	for name, outcome := range golden.Mutants {
		text := outcome.String()
		if other := seen[text]; other != "" {
			faults = append(faults, fmt.Sprintf("the check says the same of the mutant %s and of %s: it cannot tell the reader which one it is", name, other))
		}
		seen[text] = "the mutant " + name
	}
	return faults
}
