package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"

	"example.com/workbook/shared/exercise"
)

// typed runs one command as in a pipe, and returns its exit code and what it printed.
func typed(t *testing.T, r *runner, args ...string) (int, string) {
	t.Helper()
	var out, log bytes.Buffer
	c := &commands{runner: r, out: &colorprofile.Writer{Forward: &out, Profile: colorprofile.NoTTY}, log: &log}
	code, err := c.run(t.Context(), args)
	if err != nil {
		log.WriteString(err.Error())
		code = exitCannot
	}
	return code, out.String() + log.String()
}

func expect(t *testing.T, what string, code, wantCode int, text string, want ...string) {
	t.Helper()
	if code != wantCode {
		t.Errorf("%s: the exit code is %d, expected %d; output:\n%s", what, code, wantCode, text)
	}
	for _, part := range want {
		if !strings.Contains(text, part) {
			t.Errorf("%s: expected %q in:\n%s", what, part, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Errorf("%s: an escape sequence in a pipe: %q", what, text)
	}
}

func TestRunShowsTheResultsFirst(t *testing.T) {
	t.Parallel()
	r, _ := newTestRunner(t)
	code, text := typed(t, r, "run", "04a")
	expect(t, "a start", code, exitNotYet, text, "the start is copied to 01-informers/exercises/work/04a-first", "again: make learn run 04a")
	at := -1
	for _, part := range []string{
		"✗ a lost event is repaired", "the object was not created", "event ADDED a", "✓ an object is created", "What is probably wrong:",
		"The event is the only trigger.", "Your code printed:", "reconciling a", "again: make learn run 04a    hint:",
		"your files: 01-informers/exercises/work/04a-first",
	} {
		next := strings.Index(text, part)
		if next < at || next < 0 {
			t.Errorf("%q is not there, or too early, in:\n%s", part, text)
		}
		at = next
	}
	save(t, r.exercises[0], solutionText)
	code, text = typed(t, r, "run", "first")
	expect(t, "a solution", code, exitDone, text, "✓ 04a is done: 2 behaviours in 1.0 s",
		"next: make learn 04b    solutions to compare with: make learn solution 04a")
	code, text = typed(t, r, "list")
	expect(t, "the list", code, exitDone, text, "✓ 04a first", "> ")
	code, text = typed(t, r, "progress")
	expect(t, "the progress", code, exitDone, text, "1 of  3", "01-informers, from chapter 04", "next: 04b second")
}

func TestRunWithFilesThatCannotBeChecked(t *testing.T) {
	t.Parallel()
	r, c := newTestRunner(t)
	e := r.exercises[0]
	save(t, e, "broken")
	code, text := typed(t, r, "run", "04a")
	expect(t, "not compiling", code, exitNotYet, text, "does not compile", "undefined: broken")

	save(t, e, "no server")
	code, text = typed(t, r, "run", "04a")
	expect(t, "no API server", code, exitCannot, text, "04a was not checked: starting an API server")

	// During the check: the folder is deleted.
	c.during = func(context.Context, exercise.Exercise) { must(t, os.RemoveAll(e.WorkDir())) }
	code, text = typed(t, r, "run", "04a")
	expect(t, "deleted", code, exitCannot, text, "there is no file to check in 01-informers/exercises/work/04a-first")

	// The first state of the file is red, the second is green.
	save(t, e, startText)
	c.during = func(context.Context, exercise.Exercise) { save(t, e, solutionText) }
	code, text = typed(t, r, "run", "04a")
	expect(t, "edited", code, exitDone, text, "the files changed during the check: checking again", "04a is done")
	if strings.Contains(text, markMissed) {
		t.Errorf("a result of older files is shown:\n%s", text)
	}
	n := 0
	c.during = func(context.Context, exercise.Exercise) { n++; save(t, e, strings.Repeat("//\n", n)) }
	code, text = typed(t, r, "run", "04a")
	expect(t, "edited all the time", code, exitCannot, text, "the files changed during each of 5 checks")

	// Renamed: the package is the same.
	c.during = nil
	save(t, e, solutionText)
	must(t, os.Rename(filepath.Join(e.WorkDir(), "exercise.go"), filepath.Join(e.WorkDir(), "answer.go")))
	code, text = typed(t, r, "run", "04a")
	expect(t, "renamed", code, exitDone, text, "04a is done")
}

func TestCommandsThatReplaceWorkKeepIt(t *testing.T) {
	t.Parallel()
	r, _ := newTestRunner(t)
	e := r.exercises[1]
	for _, args := range [][]string{{"reset", "04b"}, {"adopt", "04b"}, {"adopt", "04b", "wide"}} {
		save(t, e, "mine before "+strings.Join(args, " "))
		code, text := typed(t, r, args...)
		expect(t, args[0], code, exitDone, text, "your files are kept in .learn/kept/04b-second-")
		_, path, _ := strings.Cut(strings.SplitN(text, "\n", 2)[0], "kept in ")
		kept, err := readFolder(filepath.Join(r.root, path))
		must(t, err)
		if got := string(kept["exercise.go"]); got != "mine before "+strings.Join(args, " ") {
			t.Errorf("%v: the copy is %q", args, got)
		}
	}
	if _, err := os.Stat(filepath.Join(e.WorkDir(), "more.go")); err != nil {
		t.Errorf("the second solution is not there: %v", err)
	}
	if text, _ := os.ReadFile(filepath.Join(e.WorkDir(), "why.txt")); text != nil {
		t.Error("the text about the solution is among the reader's files")
	}
	code, text := typed(t, r, "run", "04b")
	expect(t, "an adopted solution", code, exitDone, text, "04b is done")
	code, text = typed(t, r, "adopt", "04b", "none")
	expect(t, "adopt", code, exitCannot, text, "it has short, wide")
	code, text = typed(t, r, "reset", "05a")
	expect(t, "reset of what is not begun", code, exitDone, text, "the start of 05a is in")
	if strings.Contains(text, "kept") {
		t.Errorf("there was nothing to keep:\n%s", text)
	}
}

func TestHintsComeOneByOne(t *testing.T) {
	t.Parallel()
	r, _ := newTestRunner(t)
	code, text := typed(t, r, "hint", "04a")
	expect(t, "the first", code, exitDone, text, "hint 1 of 2", "vague")
	if strings.Contains(text, "plain") {
		t.Errorf("both hints at once:\n%s", text)
	}
	for range 2 {
		code, text = typed(t, r, "hint", "04a")
		expect(t, "the second", code, exitDone, text, "vague", "hint 2 of 2", "plain")
	}
}

func TestSolutionShowsAll(t *testing.T) {
	t.Parallel()
	r, _ := newTestRunner(t)
	code, text := typed(t, r, "solution", "04a")
	expect(t, "solution", code, exitDone, text, "It is level-triggered.", "func Solved()", "wide", "exercises/04a-first/solutions/short/exercise.go")
	if r.begun(&progress{}, r.exercises[0]) {
		t.Error("the reader's folder was written")
	}
}

func TestCheckAll(t *testing.T) {
	t.Parallel()
	r, _ := newTestRunner(t)
	code, text := typed(t, r, "check-all")
	expect(t, "nothing begun", code, exitNotYet, text, "no exercise is begun")
	save(t, r.exercises[0], solutionText)
	code, text = typed(t, r, "check-all")
	expect(t, "one done", code, exitDone, text, "✓ 04a")
	save(t, r.exercises[0], startText)
	save(t, r.exercises[2], "broken")
	code, text = typed(t, r, "check-all")
	expect(t, "two missed", code, exitNotYet, text, "✗ 04a", "1 of 2 behaviours", "✗ 05a", "does not compile")
	if strings.Contains(text, "04b") {
		t.Errorf("one that is not begun is checked:\n%s", text)
	}
	if p, _ := r.store.load(); p.done("04a") {
		t.Error("04a does not pass any more and is done")
	}
	save(t, r.exercises[0], "no server")
	code, text = typed(t, r, "check-all")
	expect(t, "no server", code, exitCannot, text, "04a was not checked", "✗ 05a")
}

func TestCommandsThatAreMistyped(t *testing.T) {
	t.Parallel()
	r, _ := newTestRunner(t)
	for want, args := range map[string][]string{
		`there is no command "rnu"`:            {"rnu", "04a"},
		`there is no exercise "99z": make`:     {"run", "99z"},
		`there is no exercise "9": make`:       {"9"},
		`no exercise 4a: did you mean 04a?`:    {"run", "4a"},
		`no exercise 4B: did you mean 04b?`:    {"4B"},
		`exercise 04: did you mean 04a or`:     {"04"},
		`exercise 5A-Third: did you mean 05a?`: {"hint", "5A-Third"},
		`04a takes no arguments: "hint" is`:    {"04a", "hint"},
		"run needs the ID":                     {"run"},
		"hint needs the ID":                    {"hint", "04a", "04b"},
		`list takes no arguments: "04a" is`:    {"list", "04a"},
	} {
		code, text := typed(t, r, args...)
		expect(t, strings.Join(args, " "), code, exitCannot, text, want)
	}
}

func TestWithoutATerminalTheNextExerciseIsChecked(t *testing.T) {
	t.Parallel()
	r, _ := newTestRunner(t)
	code, text := typed(t, r)
	expect(t, "the first", code, exitNotYet, text, "04a first: the task of 04a-first", "✗ a lost event")
	for _, id := range []string{"04a", "04b"} {
		typed(t, r, "adopt", id)
		typed(t, r, "run", id)
	}
	code, text = typed(t, r)
	expect(t, "the last", code, exitNotYet, text, "05a third")
	typed(t, r, "adopt", "05a")
	typed(t, r, "run", "05a")
	code, text = typed(t, r)
	expect(t, "none", code, exitDone, text, "all exercises are done")
}

func TestWithoutATerminalTheIDOfAnExerciseChecksIt(t *testing.T) {
	t.Parallel()
	r, _ := newTestRunner(t)
	for _, id := range []string{"04b", "second", "04b-second"} {
		code, text := typed(t, r, id)
		expect(t, id, code, exitNotYet, text, "✗ a lost event", "again: make learn run 04b")
	}
	save(t, r.exercises[1], solutionText)
	code, text := typed(t, r, "04b")
	expect(t, "a solution", code, exitDone, text, "✓ 04b is done")
}

func TestTheNextExerciseFollowsTheOneCheckedLast(t *testing.T) {
	t.Parallel()
	r, _ := newTestRunner(t)
	for _, step := range []struct{ id, text, checked, next string }{
		{"04b", startText, "again: make learn run 04b", "next: 04b second"},
		{"04b", solutionText, "next: make learn 05a", "next: 05a third"},
		{"05a", solutionText, "next: make learn 04a", "next: 04a first"}, // after the last, the first that is not done
		{"04b", solutionText, "next: make learn 04a", "next: 04a first"}, // 05a is done
		{"04a", solutionText, "all exercises are done", "3 of  3  in all"},
	} {
		i, err := r.index(step.id)
		must(t, err)
		save(t, r.exercises[i], step.text)
		_, text := typed(t, r, "run", step.id)
		if !strings.Contains(text, step.checked) {
			t.Errorf("run %s: expected %q in:\n%s", step.id, step.checked, text)
		}
		code, text := typed(t, r, "progress")
		expect(t, "the progress after "+step.id, code, exitDone, text, step.next)
	}
	// check-all checks many, and none of them is the one that the reader works on.
	save(t, r.exercises[0], startText)
	typed(t, r, "run", "04a")
	typed(t, r, "check-all")
	code, text := typed(t, r, "progress")
	expect(t, "the progress after check-all", code, exitDone, text, "next: 04a first")
}

func TestAnInterruptedCheckHasNoResult(t *testing.T) {
	t.Parallel()
	r, c := newTestRunner(t)
	ctx, cancel := context.WithCancel(t.Context())
	c.during = func(context.Context, exercise.Exercise) { cancel() }
	save(t, r.exercises[0], solutionText)
	_, err := r.check(ctx, r.exercises[0], func(string) {})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if p, _ := r.store.load(); p.done("04a") {
		t.Error("04a is done by a check that was interrupted")
	}
	must(t, r.close())
	if _, err := r.check(t.Context(), r.exercises[0], func(string) {}); err == nil || !c.closed {
		t.Errorf("closed: %t; a check after the end: %v", c.closed, err)
	}
}
