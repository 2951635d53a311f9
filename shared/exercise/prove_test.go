package exercise

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// prove runs what authors run, on the exercise with some files changed.
func prove(t *testing.T, changes map[string]string, how Proving) (string, error) {
	t.Helper()
	e := workbook(t, changes)
	var out bytes.Buffer
	how.Out, how.Jobs = &out, 4
	err := Prove(t.Context(), t.TempDir(), []Exercise{e}, how)
	return out.String(), err
}

func TestProveAcceptsAnExerciseThatIsRight(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	out, err := prove(t, map[string]string{"golden.json": `{
  "start": {"failed": ["one is doubled", "a negative number is doubled"], "message": "1 became 1"},
  "mutants": {
    "absolute": {"failed": ["a negative number is doubled"], "message": "-3 became 6"},
    "increment": {"failed": ["a negative number is doubled"], "message": "-3 became -2"}
  }
}`}, Proving{Repeat: 3})
	g.Expect(err).NotTo(HaveOccurred(), out)
	g.Expect(strings.Count(out, "ok   07a")).To(Equal(4), out)
	g.Expect(out).To(ContainSubstring("1 starts, 1 solutions and 2 mutants in "))
}

func TestProveFindsWhatIsNotAlwaysTheSame(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	out, err := prove(t, map[string]string{"solutions/other/why.txt": "Once.", "solutions/other/exercise.go": `package double

import "os"

func Double(n int) int {
	if n < 0 && os.Mkdir(` + "`" + filepath.Join(t.TempDir(), "once") + "`" + `, 0o700) != nil {
		return 0
	}
	return 2 * n
}
`}, Proving{Repeat: 2})
	g.Expect(err).To(MatchError(errNotProven))
	g.Expect(out).To(ContainSubstring("FAIL 07a solution other\n  run 2 came to"))
}

func TestAMutantIsAChangeOfOneSolution(t *testing.T) {
	t.Parallel()
	right := mutant("It adds one.", "n + 1")
	for name, c := range map[string]struct{ patch, want string }{
		"no patch":              {"It adds one.\n", "changes the files of one solution"},
		"another folder":        {strings.ReplaceAll(right, "solutions/plain/", ""), "changes the files of one solution"},
		"two solutions":         {right + strings.ReplaceAll(right, "plain", "other"), "changes the files of one solution"},
		"no such solution":      {strings.ReplaceAll(right, "plain", "other"), "no such file"},
		"an older solution":     {strings.Replace(right, "n + n", "2 * n", 1), "cannot be applied to the solution plain"},
		"a file outside of all": {strings.ReplaceAll(right, "plain/exercise.go", "plain/../../check.go"), "cannot be applied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			_, err := prove(t, map[string]string{"mutants/increment.patch": c.patch}, Proving{})
			g.Expect(err).To(MatchError(ContainSubstring(c.want)))
		})
	}
}

func TestProveLeavesNoMutant(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	e := workbook(t, nil)
	work := filepath.Dir(e.WorkDir())
	write(t, filepath.Join(work, "proof", "07a-double", "mutants", "increment", "left.go"), "package left\n")
	g.Expect(Prove(t.Context(), t.TempDir(), []Exercise{e}, Proving{Out: io.Discard})).To(Succeed(), "a run that was killed is not in the way")
	g.Expect(filepath.Join(work, "proof")).NotTo(BeADirectory())
}

func TestTwoProofsOfOneModule(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	e := workbook(t, nil)
	first := folders{}
	_, err := first.of(e.Module())
	g.Expect(err).NotTo(HaveOccurred())
	defer first.remove()
	g.Expect(Prove(t.Context(), t.TempDir(), []Exercise{e}, Proving{Out: io.Discard})).To(MatchError(ContainSubstring("another exercises-check runs")))
}

func TestProveFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		changes map[string]string
		want    string
	}{
		"a start that passes":          {map[string]string{"exercise.go": "//go:build start\n\npackage double\n\nfunc Double(n int) int { return 2 * n }\n"}, "FAIL 07a start"},
		"a solution that fails":        {map[string]string{"solutions/other/exercise.go": "package double\n\nfunc Double(n int) int { return 2 }\n", "solutions/other/why.txt": "Two."}, "FAIL 07a solution other"},
		"a mutant that passes":         {map[string]string{"mutants/increment.patch": mutant("It shifts.", "n << 1")}, "FAIL 07a mutant increment"},
		"a mutant with other failures": {map[string]string{"mutants/increment.patch": mutant("It is seven.", "7")}, "  -3 became 7"},
		"a README without hints":       {map[string]string{"README.md": "# 07a\n"}, "the README has 0 hints"},
		"two mutants that look alike": {map[string]string{"golden.json": `{"mutants": {"absolute": {"died": "exit"}, "increment": {"died": "exit"}}}`},
			"it cannot tell the reader which one it is"},
		"a mutant that is like the start": {map[string]string{"golden.json": `{"start": {"died": "exit"}, "mutants": {"absolute": {"died": "exit"}}}`},
			"says the same of the mutant absolute and of the start"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			out, err := prove(t, c.changes, Proving{})
			g.Expect(err).To(MatchError(errNotProven), out)
			g.Expect(out).To(ContainSubstring(c.want))
		})
	}
}

func TestProveWritesTheGoldenFile(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	e := workbook(t, map[string]string{"golden.json": "{}"})
	var out bytes.Buffer
	g.Expect(Prove(t.Context(), t.TempDir(), []Exercise{e}, Proving{Out: &out, Jobs: 2, Update: true})).To(Succeed(), out.String())
	content, err := os.ReadFile(e.goldenFile())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).To(MatchJSON(doubling["golden.json"]))
}

func TestProveWritesNoGoldenFileOfWhatIsWrong(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	e := workbook(t, map[string]string{"golden.json": "{}", "mutants/absolute.patch": mutant("It shifts.", "n << 1")})
	g.Expect(Prove(t.Context(), t.TempDir(), []Exercise{e}, Proving{Out: io.Discard, Update: true})).To(MatchError(errNotProven))
	g.Expect(os.ReadFile(e.goldenFile())).To(BeEquivalentTo("{}"))
}

func TestASolutionWithADataRaceFails(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	if !canRace() {
		t.Skip("the race detector needs a C compiler")
	}
	out, err := prove(t, map[string]string{"solutions/other/why.txt": "It adds at once.", "solutions/other/exercise.go": `package double

func Double(n int) int {
	sum, done := n, make(chan bool)
	go func() { sum += 0; done <- true }()
	sum += n
	<-done
	return 2 * n
}
`}, Proving{Race: true})
	g.Expect(err).To(MatchError(errNotProven))
	g.Expect(out).To(ContainSubstring("DATA RACE"))
}

// Texts that name what each run has another of are the same in each golden file.
func TestConstantTexts(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.Expect(constant(`Get "https://127.0.0.1:4242/api/v1/namespaces/exercise-ab1cd/pods?resourceVersion=12": timeout`)).
		To(Equal(`Get "https://ADDRESS/api/v1/namespaces/NAMESPACE/pods?resourceVersion=N": timeout`))
}
