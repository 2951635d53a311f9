package docstest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMap checks the map of the book that is there.
func TestMap(t *testing.T) {
	t.Parallel()
	library, err := NewLibrary("../../02-lolcow/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	problems, err := Map(t.Context(), "../..", buildMdlinks(t), library, Entries)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Error(problem)
	}
}

// buildMdlinks builds the program that looks for dead links, and returns where it is.
func buildMdlinks(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "mdlinks")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program, "./mdlinks")
	cmd.Dir = "../tools"
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building mdlinks: %v\n%s", err, output)
	}
	return program
}

// smallBook is one in which everything is right.
func smallBook() map[string]string {
	return map[string]string{
		"docs/01-begin.md":        "# 01 Begin\n\n## The first cow\n",
		"docs/02-end.md":          "# 02 End\n\n## `make run`, again\n",
		"cow_test.go":             "package cow\n\nfunc TestSeedQuestion_Moo() {}\n",
		"docs/README.md":          "# Book\n",
		"docs/troubleshooting.md": "# Errors\n",
		"docs/glossary.md":        "# Words\n",
		"docs/cheatsheet.md":      "# Commands\n\n[the first cow](01-begin.md#the-first-cow)\n",
		"docs/contents.md": `# Contents

| chapter | what |
|---|---|
| [01 Begin](01-begin.md) | a cow |
| [02 End](02-end.md) | no cow |
`,
		"docs/provenance.md": `# Provenance

| | question | where |
|---|---|---|
| Q1 | moo? | [the first cow](01-begin.md#the-first-cow), [` + "`TestSeedQuestion_Moo`" + `](../cow_test.go) |

| | lesson | where |
|---|---|---|
| W1 | moo | [the first cow](01-begin.md#the-first-cow) |
| W2 | run | [make run, again](02-end.md#make-run-again) |
`,
	}
}

// TestMapOfSmallBook breaks a small map in every way that the check is there for.
func TestMapOfSmallBook(t *testing.T) {
	t.Parallel()
	library, err := NewLibrary("../../02-lolcow/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	mdlinks := buildMdlinks(t)
	for name, test := range map[string]struct {
		file, old, new string
		want           []string
	}{
		"all right": {},
		"a chapter that is not listed": {
			"docs/contents.md", "| [02 End](02-end.md) | no cow |\n", "",
			[]string{"docs/02-end.md is not in the list of chapters"},
		},
		"a new chapter": {
			"docs/03-more.md", "", "# 03 More\n",
			[]string{"docs/03-more.md is not in the list of chapters"},
		},
		"chapters in another order": {
			"docs/contents.md", "| [02 End](02-end.md) | no cow |\n", "| [02 End](02-end.md) | no cow |\n| [01 Begin](01-begin.md) | again |\n",
			[]string{"the chapters are not listed in their order"},
		},
		"a chapter that is listed and not there": {
			"docs/contents.md", "02-end.md) |", "03-end.md) |",
			[]string{"docs/02-end.md is not in the list of chapters", "docs/contents.md: the link to 03-end.md is dead: there is no docs/03-end.md"},
		},
		"a heading that was renamed": {
			"docs/02-end.md", "again", "once more",
			[]string{"docs/provenance.md: the link to 02-end.md#make-run-again is dead: docs/02-end.md has no such heading"},
		},
		"a dead link of another page": {
			"docs/cheatsheet.md", "#the-first-cow", "#the-second-cow",
			[]string{"docs/cheatsheet.md: the link to 01-begin.md#the-second-cow is dead: docs/01-begin.md has no such heading"},
		},
		"a confusion that is a lesson too": {
			"docs/troubleshooting.md", "# Errors\n", "# Errors\n\n| | confusion | where |\n|---|---|---|\n| W2 | run | [make run, again](02-end.md#make-run-again) |\n",
			[]string{"W2 has more than one row"},
		},
		"a heading with an underscore": {
			"docs/01-begin.md", "# 01 Begin", "# 01 Begin\n\n## TestSeedQuestion_Moo",
			[]string{`docs/01-begin.md: the heading "TestSeedQuestion_Moo" has another anchor on GitHub than here`},
		},
		"a heading with an arrow": {
			"docs/01-begin.md", "# 01 Begin", "# 01 Begin → end", nil,
		},
		"a lesson that is not there": {
			"docs/provenance.md", "| W2 |", "| W3 |",
			[]string{"W2 has no row"},
		},
		"a lesson that is there twice": {
			"docs/provenance.md", "| W2 |", "| W1 |",
			[]string{"W1 has more than one row", "W2 has no row"},
		},
		"a lesson without a section": {
			"docs/provenance.md", "02-end.md#make-run-again", "02-end.md",
			[]string{"W2 names no section of a chapter"},
		},
		"a question without a test": {
			"docs/provenance.md", ", [`TestSeedQuestion_Moo`](../cow_test.go)", "",
			[]string{"Q1 names no TestSeedQuestion_…"},
		},
		"a test that is not there": {
			"cow_test.go", "Moo", "Baa",
			[]string{"Q1: ../cow_test.go: there is no TestSeedQuestion_Moo in it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := smallBook()
			if test.file != "" {
				before := files[test.file]
				files[test.file] = strings.Replace(before, test.old, test.new, 1)
				if files[test.file] == before {
					t.Fatalf("%s has no %q", test.file, test.old)
				}
			}
			problems, err := Map(t.Context(), writeFiles(t, files), mdlinks, library, []Group{{"W", 2}, {"Q", 1}})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(problems, test.want) {
				t.Errorf("got  %q\nwant %q", problems, test.want)
			}
		})
	}
}

// writeFiles writes files into a folder of their own.
func writeFiles(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for file, content := range files {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}
