// Package tests is what checks have in common whose exercise is to write tests: the reader's tests are compiled once, and run as
// a process of their own for each thing that they have to judge. The exit status is the verdict.
package tests

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"example.com/workbook/shared/exercise/check"
)

// Binary is a program with the reader's tests.
type Binary struct{ temp, dir string }

// Build compiles the tests in a folder. What the compiler says ends the behaviour.
func Build(b *check.B, dir string) *Binary {
	temp, err := os.MkdirTemp("", "tests-")
	if err != nil {
		b.Fatalf("%v", err)
	}
	binary := &Binary{temp: temp, dir: dir}
	// With the tag: the tests of a start, a solution or a mutant are none of this repository's.
	cmd := exec.CommandContext(b.Context(), "go", "test", "-c", "-tags=start", "-vet=off", "-ldflags=-s -w", "-buildvcs=false",
		"-o", binary.file(), ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED="+cmp.Or(os.Getenv("CGO_ENABLED"), "0"))
	output, err := cmd.CombinedOutput()
	if err != nil {
		binary.Remove()
		b.Fatalf("%s", cmp.Or(readable(string(output)), err.Error()))
	}
	if _, err := os.Stat(binary.file()); err != nil {
		binary.Remove()
		b.Fatalf("no file in the folder ends in _test.go")
	}
	return binary
}

// readable leaves out the name of the package.
func readable(output string) string {
	var lines []string
	for line := range strings.Lines(output) {
		if !strings.HasPrefix(line, "# ") {
			lines = append(lines, strings.TrimPrefix(strings.TrimSpace(line), "./"))
		}
	}
	return strings.Join(lines, "\n")
}

func (t *Binary) file() string { return filepath.Join(t.temp, "tests") }

// Remove deletes the program.
func (t *Binary) Remove() { _ = os.RemoveAll(t.temp) }

// limit is for all tests of a folder.
const limit = time.Minute

// Verdict is how the tests ended.
type Verdict struct {
	b       *check.B
	passed  bool
	endless bool
}

// Run runs all tests, with a variable in their environment.
func (t *Binary) Run(b *check.B, variable string) Verdict {
	cmd := exec.CommandContext(b.Context(), t.file(), "-test.timeout="+b.Patience(limit).String())
	cmd.Dir = t.dir
	cmd.Env = append(os.Environ(), variable)
	output, err := cmd.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		b.Fatalf("running the tests: %v", err)
	}
	b.Event("the tests run with %s: %s", variable, map[bool]string{true: "they pass", false: "they fail"}[err == nil])
	for line := range strings.Lines(string(output)) {
		b.Event("  %s", strings.TrimRight(line, "\n"))
	}
	return Verdict{b, err == nil, err != nil && strings.Contains(string(output), "panic: test timed out")}
}

// ExpectPass ends the behaviour if a test failed. The text says what was judged.
func (v Verdict) ExpectPass(text string) {
	v.expectEnd(text)
	if !v.passed {
		v.b.Fatalf("the test fails: %s", text)
	}
}

// ExpectFailure ends the behaviour if no test failed.
func (v Verdict) ExpectFailure(text string) {
	v.expectEnd(text)
	if v.passed {
		v.b.Fatalf("the test passes: %s", text)
	}
}

// expectEnd ends the behaviour if the tests ran until the time limit. A test that waits for ever has judged nothing.
func (v Verdict) expectEnd(text string) {
	if v.endless {
		v.b.Fatalf("the tests do not end: %s", text)
	}
}
