package conformance

import (
	"errors"
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

var updateTables = flag.Bool("update", false, "update the table of lines where it is shown")

// part is a part of a controller, and its files.
type part struct {
	name         string
	raw, managed []string
}

// parts are the two implementations, side by side. Every file is in one of them.
var parts = []part{
	{"Reconcile: fetch, act, report", []string{"foo_controller.go"}, []string{"foo_controller.go"}},
	{"the Deployment: apply, delete", []string{"apply.go"}, []string{"apply.go"}},
	{"status", []string{"status.go"}, []string{"status.go"}},
	{"caches, indexes, and what triggers a reconciliation", []string{"informers.go"}, []string{"cache.go", "watches.go"}},
	{"reading one's own writes", []string{"written.go"}, nil},
	{"queue and workers", []string{"loop.go"}, []string{"drain.go"}},
	{"leader election", []string{"election.go"}, nil},
	{"metrics, with authentication and authorization", []string{"metrics.go", "auth.go"}, nil},
	{"health probes, and the servers", []string{"server.go"}, []string{"probes.go"}},
	{"clients, and the check at the start", []string{"clients.go"}, []string{"check.go"}},
	{"wiring, start and shutdown", []string{"controller.go", "run.go"}, []string{"run.go", "start.go"}},
}

const (
	tableBegin = "<!-- lines:begin -->"
	tableEnd   = "<!-- lines:end -->"
	rawDir     = "../raw"
	managedDir = "../managed"
)

func TestEveryFileIsInOnePart(t *testing.T) {
	g := NewWithT(t)
	var raw, managed []string
	for _, part := range parts {
		raw = append(raw, part.raw...)
		managed = append(managed, part.managed...)
	}
	g.Expect(goFiles(t, rawDir)).To(ConsistOf(raw), "files of internal/raw")
	g.Expect(goFiles(t, managedDir)).To(ConsistOf(managed), "files of internal/managed")
}

// TestSideBySide counts the lines for the tables in the README and in the chapter, whose links begin at its own folder.
func TestSideBySide(t *testing.T) {
	for document, stage := range map[string]string{
		"../../README.md":                      "",
		"../../../docs/10-a-raw-controller.md": "../01-informers/",
	} {
		content, err := os.ReadFile(document)
		if errors.Is(err, fs.ErrNotExist) && stage != "" {
			continue // a copy of the stage, without the chapters
		}
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		before, rest, found := strings.Cut(string(content), tableBegin)
		g.Expect(found).To(BeTrue(), "no %s in %s", tableBegin, document)
		_, after, found := strings.Cut(rest, tableEnd)
		g.Expect(found).To(BeTrue(), "no %s after it in %s", tableEnd, document)

		want := before + tableBegin + "\n" + table(t, stage) + tableEnd + after
		if *updateTables {
			g.Expect(os.WriteFile(document, []byte(want), 0o644)).To(Succeed())
			continue
		}
		g.Expect(string(content)).To(Equal(want), "go test ./internal/conformance -run TestSideBySide -update updates it")
	}
}

func TestCodeLines(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		source string
		want   int
	}{
		"nothing":              {"", 0},
		"comments and blanks":  {"// a\n\n/* b\n   c */\npackage p\n", 1},
		"code before comments": {"package p // a\n\nvar x = 1 /* b\n*/\n", 2},
		"a text of 3 lines":    {"package p\n\nvar x = `a\n\nb`\n", 4},
		"a closing brace":      {"package p\n\nfunc f() {\n\tg()\n\n}\n", 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			NewWithT(t).Expect(codeLines([]byte(test.source))).To(Equal(test.want))
		})
	}
}

// table is the Markdown of both implementations, part for part. stage leads to the stage's folder.
func table(t *testing.T, stage string) string {
	t.Helper()
	var text strings.Builder
	rawSum, managedSum := 0, 0
	fmt.Fprintln(&text, "| part | internal/raw | lines | internal/managed | lines |")
	fmt.Fprintln(&text, "|---|---|--:|---|--:|")
	for _, part := range parts {
		raw, managed := linesOf(t, rawDir, part.raw), linesOf(t, managedDir, part.managed)
		rawSum, managedSum = rawSum+raw, managedSum+managed
		fmt.Fprintf(&text, "| %s | %s | %d | %s | %d |\n", part.name, links(stage, "raw", part.raw), raw, links(stage, "managed", part.managed), managed)
	}
	fmt.Fprintf(&text, "| written by hand | | %d | | %d |\n", rawSum, managedSum)
	fmt.Fprintf(&text, "| generated for it | [internal/generated](%sinternal/generated) | %d | | 0 |\n", stage, generatedLines(t))
	return text.String()
}

func links(stage, implementation string, files []string) string {
	if len(files) == 0 {
		return "in the library"
	}
	all := make([]string, len(files))
	for i, file := range files {
		all[i] = fmt.Sprintf("[%s](%sinternal/%s/%s)", file, stage, implementation, file)
	}
	return strings.Join(all, ", ")
}

// goFiles are the names of the Go files in a folder, but for its tests.
func goFiles(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(file string) bool { return strings.HasSuffix(file, "_test.go") })
	for i, file := range all {
		all[i] = filepath.Base(file)
	}
	return all
}

func linesOf(t *testing.T, dir string, files []string) int {
	t.Helper()
	sum := 0
	for _, file := range files {
		source, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		sum += codeLines(source)
	}
	return sum
}

// generatedLines counts what code-generator made: clientset, listers, informers and apply configurations.
func generatedLines(t *testing.T) int {
	t.Helper()
	sum := 0
	err := filepath.WalkDir("../generated", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(path) == ".go" {
			sum += linesOf(t, filepath.Dir(path), []string{filepath.Base(path)})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// codeLines counts the lines that hold code: not blank ones, and not those of comments alone.
func codeLines(source []byte) int {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(source))
	var all scanner.Scanner
	all.Init(file, source, nil, 0)
	lines := map[int]bool{}
	for {
		position, what, literal := all.Scan()
		if what == token.EOF {
			return len(lines)
		}
		if what == token.SEMICOLON && literal != ";" {
			continue // the scanner's own, at the end of a line
		}
		first := file.Line(position)
		for line := first; line <= first+strings.Count(literal, "\n"); line++ {
			lines[line] = true
		}
	}
}
