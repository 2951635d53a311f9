package docstest

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// Group is a series of entries that the map has to have: 1 to Last, each with a prefix before its number.
type Group struct {
	Prefix string
	Last   int
}

// Entries are what [confusions] and [provenance] have to have a row for, in whichever of their tables. The ids are their
// own; their numbers are the order of the seeds.
var Entries = []Group{
	{"W", 11},   // the nine rules of wisdom, the workspace object, the cache and the APIReader
	{"S1.", 25}, // the two stories of Lolcow
	{"S2.", 9},  // Flux
	{"S3.", 12}, // the study journey
	{"S4.", 19}, // Goop
	{"Q", 12},   // the open questions
	{"C", 15},   // the confusions
}

// testPrefix begins the name of a test that settles an open question.
const testPrefix = "TestSeedQuestion_"

// Map checks the pages that lead through the book in docs below root: that [contents] lists every chapter, in order; that
// all links of all pages lead to something; that there is a row for each entry, with the section that carries it; and that
// the tests named in the rows of the open questions are there. mdlinks is the program of scripts/tools. Each problem is a
// line.
func Map(ctx context.Context, root, mdlinks string, library *Library, entries []Group) ([]string, error) {
	docs := filepath.Join(root, "docs")
	found, err := readBook(docs)
	if err != nil {
		return nil, err
	}
	dead, err := deadLinks(ctx, root, mdlinks)
	if err != nil {
		return nil, err
	}
	lessons := slices.Concat(found.rows[confusions], found.rows[provenance])
	return slices.Concat(listed(found.rows[contents], found.chapters), dead, ambiguous(found.chapters), missing(lessons, entries),
		untested(ctx, docs, library, lessons)), nil
}

// row is one of a table.
type row struct {
	cells  []string
	links  []string
	claims []Source
}

func rowsOf(source []byte) []row {
	var rows []row
	_ = ast.Walk(markdown.Parser().Parse(text.NewReader(source)), func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if _, isRow := node.(*extast.TableRow); !isRow || !entering {
			return ast.WalkContinue, nil
		}
		var found row
		for cell := node.FirstChild(); cell != nil; cell = cell.NextSibling() {
			found.cells = append(found.cells, strings.TrimSpace(string(cell.Lines().Value(source))))
		}
		_ = ast.Walk(node, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
			if link, isLink := node.(*ast.Link); isLink && entering {
				to := string(link.Destination)
				found.links = append(found.links, to)
				found.claims = append(found.claims, Source{Link: to, Names: names(link, source)})
			}
			return ast.WalkContinue, nil
		})
		rows = append(rows, found)
		return ast.WalkSkipChildren, nil
	})
	return rows
}

var wholeChapter = regexp.MustCompile(`^\d\d-[\w-]+\.md$`)

// chapter is the name of the chapter that a row of the list is about.
func (r row) chapter() (name string, isChapter bool) {
	if len(r.links) == 0 || !strings.HasPrefix(r.cells[0], "[") || !wholeChapter.MatchString(r.links[0]) {
		return "", false
	}
	return strings.TrimSuffix(r.links[0], ".md"), true
}

// listed compares the chapters with the rows that are about one.
func listed(rows []row, chapters []Chapter) []string {
	var problems, list []string
	for _, r := range rows {
		if name, isChapter := r.chapter(); isChapter {
			list = append(list, name)
		}
	}
	if !slices.IsSorted(list) {
		problems = append(problems, "the chapters are not listed in their order")
	}
	for _, chapter := range chapters {
		if !slices.Contains(list, chapter.Name) {
			problems = append(problems, fmt.Sprintf("docs/%s.md is not in the list of chapters", chapter.Name))
		}
	}
	return problems
}

// deadLinks has mdlinks look at the pages.
func deadLinks(ctx context.Context, root, mdlinks string) ([]string, error) {
	check := exec.CommandContext(ctx, mdlinks)
	for _, name := range pages {
		check.Args = append(check.Args, "docs/"+name)
	}
	check.Dir = root
	output, err := check.CombinedOutput()
	if err == nil {
		return nil, nil
	}
	if check.ProcessState == nil || check.ProcessState.ExitCode() != 1 {
		return nil, fmt.Errorf("running mdlinks: %w\n%s", err, output)
	}
	return strings.Split(strings.TrimSpace(string(output)), "\n"), nil
}

// differs tells of a character in a heading whether GitHub keeps it in the anchor and mdlinks does not.
func differs(r rune) bool {
	return r == '_' || (r > unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r)))
}

// ambiguous are the headings whose anchors are not the same everywhere.
func ambiguous(chapters []Chapter) []string {
	var problems []string
	for _, chapter := range chapters {
		_ = ast.Walk(markdown.Parser().Parse(text.NewReader(chapter.Source)), func(node ast.Node, entering bool) (ast.WalkStatus, error) {
			heading, isHeading := node.(*ast.Heading)
			if !isHeading || !entering {
				return ast.WalkContinue, nil
			}
			if title := strings.TrimSpace(string(heading.Lines().Value(chapter.Source))); strings.ContainsFunc(title, differs) || strings.Contains(title, "](") {
				problems = append(problems, fmt.Sprintf("docs/%s.md: the heading %q has another anchor on GitHub than here", chapter.Name, title))
			}
			return ast.WalkSkipChildren, nil
		})
	}
	return problems
}

// missing are the entries that have no row, more than one, or no section of a chapter in it.
func missing(rows []row, entries []Group) []string {
	found := map[string][]row{}
	for _, r := range rows {
		found[r.cells[0]] = append(found[r.cells[0]], r)
	}
	var problems []string
	for _, group := range entries {
		for n := range group.Last {
			id := fmt.Sprintf("%s%d", group.Prefix, n+1)
			switch of := found[id]; {
			case len(of) == 0:
				problems = append(problems, id+" has no row")
			case len(of) > 1:
				problems = append(problems, id+" has more than one row")
			case !slices.ContainsFunc(of[0].links, section.MatchString):
				problems = append(problems, id+" names no section of a chapter")
			}
		}
	}
	return problems
}

var section = regexp.MustCompile(`^\d\d-[\w-]+\.md#[\w-]+$`)

var question = regexp.MustCompile(`^Q\d+$`)

// untested are the open questions without a test, or with one that is not where the link says.
func untested(ctx context.Context, docs string, library *Library, rows []row) []string {
	var problems []string
	for _, r := range rows {
		if !question.MatchString(r.cells[0]) {
			continue
		}
		tests := 0
		for _, claim := range r.claims {
			if !slices.ContainsFunc(claim.Names, func(name string) bool { return strings.HasPrefix(name, testPrefix) }) {
				continue
			}
			tests++
			if err := library.Check(ctx, docs, claim); err != nil {
				problems = append(problems, fmt.Sprintf("%s: %v", r.cells[0], err))
			}
		}
		if tests == 0 {
			problems = append(problems, r.cells[0]+" names no "+testPrefix+"…")
		}
	}
	return problems
}
