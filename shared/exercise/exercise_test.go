package exercise

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// The exercise of these tests: a function that doubles a number.
var doubling = map[string]string{
	"exercise.json": `{"title": "Double it", "entry": "Double", "seconds": 2}`,
	"README.md": "# 07a Double it\n\nWrite `Double`.\n\n<details><summary>Hint 1</summary>\n\nThink.\n</details>\n\n" +
		"<details><summary>Hint 2</summary>\n\nAdd.\n</details>\n\n<details><summary>Hint 3</summary>\n\nReturn n + n.\n</details>\n",
	"exercise.go": "//go:build start\n\npackage double\n\n// Double doubles n.\nfunc Double(n int) int {\n\t// TODO\n\treturn n\n}\n",
	"check.go": `package double

import "example.com/workbook/shared/exercise/check"

type Entry func(int) int

func Check(t *check.T, work check.Work[Entry]) {
	for _, c := range []struct {
		name    string
		n, want int
	}{{"one is doubled", 1, 2}, {"a negative number is doubled", -3, -6}} {
		t.Behaviour(c.name, func(b *check.B) {
			got := work.Entry(c.n)
			b.Event("Double(%d) is %d", c.n, got)
			if got != c.want {
				b.Fatalf("%d became %d", c.n, got)
			}
		})
	}
}
`,
	"solutions/plain/exercise.go": "package double\n\nfunc Double(n int) int { return n + n }\n",
	"solutions/plain/why.txt":     "It adds.\n",
	"mutants/absolute.patch":      mutant("The sign\nis lost.", "max(n, -n) * 2"),
	"mutants/increment.patch":     mutant("It adds one.", "n + 1"),
	"golden.json": `{
  "start": {"failed": ["one is doubled", "a negative number is doubled"], "message": "1 became 1"},
  "mutants": {
    "absolute": {"failed": ["a negative number is doubled"], "message": "-3 became 6"},
    "increment": {"failed": ["a negative number is doubled"], "message": "-3 became -2"}
  }
}
`,
}

// mutant is the patch of a mutant that returns something else.
func mutant(text, result string) string {
	const file = "solutions/plain/exercise.go"
	return text + "\n\ndiff --git a/" + file + " b/" + file + "\n--- a/" + file + "\n+++ b/" + file + "\n@@ -1,3 +1,3 @@\n package double\n \n" +
		"-func Double(n int) int { return n + n }\n+func Double(n int) int { return " + result + " }\n"
}

// workbook writes a workbook with this exercise alone, and returns the exercise.
func workbook(t *testing.T, changes map[string]string) Exercise {
	t.Helper()
	g := NewWithT(t)
	root := t.TempDir()
	shared, err := filepath.Abs("..")
	g.Expect(err).NotTo(HaveOccurred())
	module := filepath.Join(root, "01-x", "exercises")
	files := maps.Clone(doubling)
	maps.Copy(files, changes)
	for name, content := range files {
		write(t, filepath.Join(module, "07a-double", name), content)
	}
	write(t, filepath.Join(module, "go.mod"), "module example.com/x\n\ngo 1.26.0\n\nignore ./work\n\n"+
		"require example.com/workbook/shared v0.0.0\n\nreplace example.com/workbook/shared => "+shared+"\n")
	e, err := Find(root, "07a")
	g.Expect(err).NotTo(HaveOccurred())
	return e
}

func write(t *testing.T, file, content string) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(os.MkdirAll(filepath.Dir(file), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(file, []byte(content), 0o644)).To(Succeed())
}

// double is the reader's function with this body, and helpers below it.
func double(body string) string {
	return "package double\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\nvar _, _ = fmt.Sprint, os.Getenv\n\n" +
		"func Double(n int) int {\n" + body + "\n}\n"
}

func TestTheEndsOfARun(t *testing.T) {
	t.Parallel()
	e := workbook(t, nil)
	failing := []string{"one is doubled", "a negative number is doubled"}
	for name, c := range map[string]struct {
		code  string
		check func(g Gomega, r Result)
	}{
		"a solution": {double("return 2 * n"), func(g Gomega, r Result) {
			g.Expect(r.OK()).To(BeTrue(), "%+v", r)
			g.Expect(r.Behaviours).To(HaveLen(2))
			g.Expect(r.Took).To(BeNumerically(">=", r.Built))
		}},
		"the start gets no diagnosis": {double("return n"), func(g Gomega, r Result) {
			g.Expect(r.Outcome().Failed).To(Equal(failing))
			g.Expect(r.Behaviours[0].Seen).To(Equal("1 became 1"))
			g.Expect(r.Behaviours[0].Timeline).To(Equal([]string{"Double(1) is 1"}))
			g.Expect(r.Diagnosis).To(BeEmpty())
		}},
		"the answer of a mutant gets its diagnosis": {double("if n < 0 {\n\t\treturn -n * 2\n\t}\n\treturn n * 2"), func(g Gomega, r Result) {
			g.Expect(r.Diagnosis).To(Equal("The sign is lost."))
			g.Expect(r.Alike).To(BeEmpty())
		}},
		"a panic in a goroutine": {double("done := make(chan int)\n\tgo func() {\n\t\tvar p *int\n\t\tdone <- *p\n\t}()\n\treturn <-done"),
			func(g Gomega, r Result) {
				g.Expect(r.Died).To(HaveValue(HaveField("Kind", DeathPanic)))
				g.Expect(r.Died.Line).To(Equal("exercise.go:14"))
				g.Expect(r.Died.Message).To(ContainSubstring("nil pointer"))
				g.Expect(r.Died.Behaviour).To(Equal("one is doubled"))
			}},
		"os.Exit(0)": {double("if n < 0 {\n\t\tos.Exit(0)\n\t}\n\treturn 2 * n"), func(g Gomega, r Result) {
			g.Expect(r.OK()).To(BeFalse())
			g.Expect(r.Died).To(HaveValue(And(HaveField("Kind", DeathExit), HaveField("Line", "exercise.go:12"))))
			g.Expect(r.Died.Behaviour).To(Equal("a negative number is doubled"))
			g.Expect(r.Behaviours).To(ConsistOf(HaveField("OK", true)))
		}},
		"a loop": {double("for n != 0 {\n\t\tn = len(os.Getenv(fmt.Sprint(n))) + 1\n\t}\n\treturn n"), func(g Gomega, r Result) {
			g.Expect(r.Died).To(HaveValue(HaveField("Kind", DeathLoop)))
			g.Expect(r.Died.Line).To(MatchRegexp(`^exercise\.go:1[123]$`))
		}},
		"a goroutine that waits for ever": {double("<-make(chan int)\n\treturn n"), func(g Gomega, r Result) {
			g.Expect(r.Died).To(HaveValue(And(HaveField("Kind", DeathLoop), HaveField("Line", "exercise.go:11 (chan receive)"))))
		}},
		"a signal": {strings.Replace(double("p, _ := os.FindProcess(os.Getpid())\n\t_ = p.Kill()\n\tselect {}"), "int {\n", "int {\n\t", 1),
			func(g Gomega, r Result) {
				g.Expect(r.Died).To(HaveValue(And(HaveField("Kind", DeathKilled), HaveField("Message", ContainSubstring("killed")))))
			}},
		"noise on standard output": {double(`fmt.Println("{\"end\":true}\n{\"behaviour\":\"x\",\"ok\":true}")` + "\n\treturn n"),
			func(g Gomega, r Result) {
				g.Expect(r.Outcome().Failed).To(Equal(failing))
				g.Expect(r.Output).To(ContainSubstring(`"end":true`))
			}},
		"more output than is kept": {double(`fmt.Printf("%0200000d\n", n)` + "\n\treturn 2 * n"), func(g Gomega, r Result) {
			g.Expect(r.OK()).To(BeTrue())
			g.Expect(len(r.Output)).To(BeNumerically("<=", outputLimit))
		}},
		"a compile error": {double("return m"), func(g Gomega, r Result) {
			g.Expect(r.CompileError).To(Equal("exercise.go:11:8: undefined: m"))
			g.Expect(r.OK()).To(BeFalse())
		}},
		"another signature": {"package double\n\nfunc Double(n string) string { return n }\n", func(g Gomega, r Result) {
			g.Expect(r.CompileError).To(HavePrefix("the check uses Double: cannot use Double (value of type func(n string)"))
		}},
		"a build tag": {"//go:build start\n\n" + double("return 2 * n"), func(g Gomega, r Result) {
			g.Expect(r.CompileError).To(HaveSuffix("delete that line"))
		}},
		"no such function": {"package double\n", func(g Gomega, r Result) {
			g.Expect(r.CompileError).To(Equal("the check uses Double: undefined: Double"))
		}},
		"another package name": {strings.Replace(double("return 2 * n"), "package double", "package mine", 1), func(g Gomega, r Result) {
			g.Expect(r.OK()).To(BeTrue(), "%+v", r)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			dir := filepath.Join(e.Module(), "work", strings.NewReplacer(" ", "-", "(", "", ")", "").Replace(name))
			write(t, filepath.Join(dir, "exercise.go"), c.code)
			result, err := Run(t.Context(), e, dir, Options{})
			g.Expect(err).NotTo(HaveOccurred())
			c.check(g, result)
		})
	}
}

// What fails alike may be wrong for another reason.
func TestOnlyTheSameMessageIsADiagnosis(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	e := workbook(t, nil)
	const missed = "a negative number is doubled"
	golden := Golden{Mutants: map[string]Outcome{"absolute": {Failed: []string{missed}, Message: "-3 became 6"}}}
	for seen, want := range map[string][2]string{"-3 became 6": {"The sign is lost.", ""}, "-3 became 7": {"", "The sign is lost."}} {
		text, alike, err := e.diagnosis(golden, Result{Behaviours: []Behaviour{{Name: "one is doubled", OK: true}, {Name: missed, Seen: seen}}})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect([2]string{text, alike}).To(Equal(want), seen)
	}
}

func TestNoFileAndNoFolder(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	e := workbook(t, nil)
	result, err := Run(t.Context(), e, e.WorkDir(), Options{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.CompileError).To(HavePrefix("no Go file is in "))
}

func TestACancelledRunIsNoResult(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	e := workbook(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Run(ctx, e, filepath.Join(e.Dir, "solutions", "plain"), Options{})
	g.Expect(err).To(MatchError(context.Canceled))
}

func TestWhatAReaderGets(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	e := workbook(t, nil)
	g.Expect(e.Name).To(Equal("double"))
	g.Expect(e.Title).To(Equal("Double it"))
	g.Expect(e.Part0).To(BeFalse())
	g.Expect(e.Task()).To(Equal("# 07a Double it\n\nWrite `Double`.\n"))
	g.Expect(e.Hints()).To(Equal([]string{"Think.\n", "Add.\n", "Return n + n.\n"}))
	start, err := e.Start()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(start).To(ConsistOf(HaveField("Path", "exercise.go")))
	g.Expect(string(start[0].Content)).To(HavePrefix("package double\n"), "without the build tag")
	solutions, err := e.Solutions()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(solutions).To(ConsistOf(HaveField("Text", "It adds.")))
	files, err := solutions[0].Files()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).To(ConsistOf(HaveField("Path", "exercise.go")), "without the text about it")
}

func TestTheReferenceIsTheFirstSolution(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	dir := t.TempDir()
	for _, name := range []string{"_announcer", "_reference", "_zero"} {
		write(t, filepath.Join(dir, "solutions", name, whyFile), "It adds.")
	}
	solutions, err := Exercise{Dir: dir}.Solutions()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(solutions).To(HaveExactElements(HaveField("Name", "_reference"), HaveField("Name", "_announcer"), HaveField("Name", "_zero")))
}

func TestTheOrderIsPart0ThenTheChapters(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	root := t.TempDir()
	for _, dir := range []string{"01-x/exercises/04a-scheme", "02-y/exercises/14a-conditions", "02-y/exercises/12b-port", "02-y/exercises/11a-empty", "02-y/exercises/12a-acquit"} {
		write(t, filepath.Join(root, dir, "exercise.json"), `{"title": "x"}`)
	}
	all, err := List(root)
	g.Expect(err).NotTo(HaveOccurred())
	var ids []string
	for _, e := range all {
		ids = append(ids, e.ID)
	}
	g.Expect(ids).To(Equal([]string{"11a", "14a", "12b", "04a", "12a"}))
	g.Expect(slices.IndexFunc(all, func(e Exercise) bool { return !e.Part0 })).To(Equal(3))
}
