package docstest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The pages of docs/ besides the chapters.
const (
	startPage  = "README.md"
	contents   = "contents.md"        // the chapters
	confusions = "troubleshooting.md" // errors and confusions, and what helps
	glossary   = "glossary.md"        // a sentence on each term
	cheatsheet = "cheatsheet.md"
	provenance = "provenance.md" // what the sources taught, and where it is
)

var pages = []string{startPage, contents, confusions, glossary, cheatsheet, provenance}

// startWords is how long the start page may be.
const startWords = 500

// book is what there is in docs/: the chapters, in order, and, of each other page, its text and the rows of all its tables.
type book struct {
	chapters []Chapter
	sources  map[string][]byte
	rows     map[string][]row
}

func readBook(docs string) (book, error) {
	found := book{sources: map[string][]byte{}, rows: map[string][]row{}}
	for _, name := range pages {
		source, err := os.ReadFile(filepath.Join(docs, name))
		if err != nil {
			return book{}, fmt.Errorf("reading the book: %w", err)
		}
		found.sources[name], found.rows[name] = source, rowsOf(source)
	}
	var err error
	found.chapters, err = Chapters(docs)
	return found, err
}

// Pages checks the pages in docs below root that readers look things up in: the start page is short; the glossary and the
// list of errors are sorted, and each row leads to a section of a chapter; and that chapter shows the text of the error.
// Each problem is a line.
func Pages(root string) ([]string, error) {
	found, err := readBook(filepath.Join(root, "docs"))
	if err != nil {
		return nil, err
	}
	var problems []string
	if words := len(bytes.Fields(found.sources[startPage])); words >= startWords {
		problems = append(problems, fmt.Sprintf("docs/%s has %d words, want fewer than %d", startPage, words, startWords))
	}
	errorRows := slices.DeleteFunc(slices.Clone(found.rows[confusions]), func(r row) bool { return quoted(r) == "" })
	for name, rows := range map[string][]row{glossary: found.rows[glossary], confusions: errorRows} {
		if len(rows) == 0 {
			problems = append(problems, fmt.Sprintf("docs/%s has no rows", name))
		}
		for _, problem := range slices.Concat(unsorted(rows), unexplained(rows)) {
			problems = append(problems, fmt.Sprintf("docs/%s: %s", name, problem))
		}
	}
	for _, r := range errorRows {
		if !shown(r, found.chapters) {
			problems = append(problems, fmt.Sprintf("docs/%s: no chapter that %q leads to shows it", confusions, quoted(r)))
		}
	}
	slices.Sort(problems)
	return problems, nil
}

var firstCode = regexp.MustCompile("^`([^`]+)`")

// quoted is the text of the error that a row is about; a row about anything else has none.
func quoted(r row) string {
	if found := firstCode.FindStringSubmatch(r.cells[0]); found != nil {
		return found[1]
	}
	return ""
}

// unsorted are the rows that a reader who goes by the alphabet does not find, and those that are there twice.
func unsorted(rows []row) []string {
	var problems []string
	for i := 1; i < len(rows); i++ {
		if before, here := word(rows[i-1]), word(rows[i]); here <= before {
			problems = append(problems, fmt.Sprintf("%q does not come after %q", here, before))
		}
	}
	return problems
}

// word is what a row is sorted by.
func word(r row) string {
	return strings.ToLower(strings.Trim(r.cells[0], "`*"))
}

// unexplained are the rows that lead to no section of a chapter.
func unexplained(rows []row) []string {
	var problems []string
	for _, r := range rows {
		if !slices.ContainsFunc(r.links, section.MatchString) {
			problems = append(problems, fmt.Sprintf("%q names no section of a chapter", word(r)))
		}
	}
	return problems
}

// shown reports whether a chapter that a row leads to has the text of its error.
func shown(r row, chapters []Chapter) bool {
	return slices.ContainsFunc(chapters, func(chapter Chapter) bool {
		return bytes.Contains(chapter.Source, []byte(quoted(r))) &&
			slices.ContainsFunc(r.links, func(link string) bool { return strings.HasPrefix(link, chapter.Name+".md#") })
	})
}
