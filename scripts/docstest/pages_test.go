package docstest

import (
	"slices"
	"strings"
	"testing"
)

// TestPages checks the pages that are there.
func TestPages(t *testing.T) {
	t.Parallel()
	problems, err := Pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Error(problem)
	}
}

// TestPagesOfSmallBook breaks the pages of a small book in every way that the check is there for.
func TestPagesOfSmallBook(t *testing.T) {
	t.Parallel()
	const explained = " | [the first cow](01-begin.md#the-first-cow) |\n"
	for name, test := range map[string]struct {
		file, old, new string
		want           []string
	}{
		"all right": {},
		"a long start": {
			"docs/README.md", "# Book\n", strings.Repeat("moo ", 500),
			[]string{"docs/README.md has 500 words, want fewer than 500"},
		},
		"terms in another order": {
			"docs/glossary.md", "cow | gives milk", "wolf | gives none",
			[]string{`docs/glossary.md: "pod" does not come after "wolf"`},
		},
		"a term that is there twice": {
			"docs/glossary.md", "pod", "Cow",
			[]string{`docs/glossary.md: "cow" does not come after "cow"`},
		},
		"a term without a section": {
			"docs/glossary.md", "01-begin.md#the-first-cow", "01-begin.md",
			[]string{`docs/glossary.md: "cow" names no section of a chapter`, `docs/glossary.md: "pod" names no section of a chapter`},
		},
		"errors in another order": {
			"docs/troubleshooting.md", "`moo!`", "`No milk`",
			[]string{`docs/troubleshooting.md: "no hay" does not come after "no milk"`, `docs/troubleshooting.md: no chapter that "No milk" leads to shows it`},
		},
		"an error that the chapter does not show": {
			"docs/01-begin.md", "no hay", "no grass",
			[]string{`docs/troubleshooting.md: no chapter that "no hay" leads to shows it`},
		},
		"no table": {
			"docs/glossary.md", "|", "",
			[]string{"docs/glossary.md has no rows"},
		},
		"what is no error": {
			"docs/troubleshooting.md", "`moo!`", "all is quiet", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := smallBook()
			files["docs/01-begin.md"] += "\nmoo! and no hay\n"
			files["docs/glossary.md"] = "| term | what it is | where |\n|---|---|---|\n| cow | gives milk" + explained + "| **pod** | holds peas" + explained
			files["docs/troubleshooting.md"] = "| error | where |\n|---|---|\n| `moo!`" + explained + "| `no hay`" + explained
			if test.file != "" {
				before := files[test.file]
				files[test.file] = strings.ReplaceAll(before, test.old, test.new)
				if files[test.file] == before {
					t.Fatalf("%s has no %q", test.file, test.old)
				}
			}
			problems, err := Pages(writeFiles(t, files))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(problems, test.want) {
				t.Errorf("got  %q\nwant %q", problems, test.want)
			}
		})
	}
}
