package docstest

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// Shapes checks every chapter of docs/ below root with [Shape]. Each problem is a line.
func Shapes(root string) ([]string, error) {
	found, err := readBook(filepath.Join(root, "docs"))
	if err != nil {
		return nil, err
	}
	listed := map[string][]string{}
	for _, r := range found.rows[contents] {
		if name, isChapter := r.chapter(); isChapter {
			listed[name] = r.cells
		}
	}
	var problems []string
	for _, chapter := range found.chapters {
		for _, problem := range Shape(chapter, listed[chapter.Name]) {
			problems = append(problems, fmt.Sprintf("docs/%s.md: %s", chapter.Name, problem))
		}
	}
	return problems, nil
}

// head is what a chapter begins with, each run of white space being a space.
var head = regexp.MustCompile(`^# (\d\d) \S.* \*\*You will be able to\*\* \S.* \*\*Time\*\* (\d+ (?:s|min)) for the commands, (\d+ (?:min|h)) in all\..* \*\*Needs\*\* Go`)

// Shape says what a chapter lacks of the parts that all have: a head with what its readers will be able to do, the time that
// the list gives too, and what it needs; a diagram; and, last of all, questions with folded answers, and three further
// readings with a word on why. listed are the cells of its row in the list of chapters.
func Shape(chapter Chapter, listed []string) []string {
	var problems []string
	begin, _, _ := bytes.Cut(chapter.Source, []byte("\n## "))
	if found := head.FindStringSubmatch(strings.Join(strings.Fields(string(begin)), " ")); found == nil {
		problems = append(problems, "it does not begin with its title, **You will be able to**, **Time** … for the commands, … in all, and **Needs**")
	} else {
		if !strings.HasPrefix(chapter.Name, found[1]+"-") {
			problems = append(problems, "its title has the number "+found[1])
		}
		if time := found[2] + ", " + found[3]; len(listed) < 3 || listed[2] != time {
			problems = append(problems, fmt.Sprintf("its time is %q, and docs/contents.md says %q", time, listed))
		}
	}
	tree := markdown.Parser().Parse(text.NewReader(chapter.Source))
	if !hasDiagram(tree, chapter.Source) {
		problems = append(problems, "it has no diagram")
	}
	return append(problems, lastSections(tree, chapter.Source)...)
}

// hasDiagram looks for one in Mermaid's language, or a drawing.
func hasDiagram(tree ast.Node, source []byte) bool {
	found := false
	_ = ast.Walk(tree, func(node ast.Node, _ bool) (ast.WalkStatus, error) {
		switch node := node.(type) {
		case *ast.FencedCodeBlock:
			found = found || string(node.Language(source)) == "mermaid"
		case *ast.Image:
			found = found || strings.HasSuffix(string(node.Destination), ".svg")
		}
		return ast.WalkContinue, nil
	})
	return found
}

// lastSections checks the last two sections, and what is in them.
func lastSections(tree ast.Node, source []byte) []string {
	var before, title string
	answers, readings := 0, 0
	for node := tree.FirstChild(); node != nil; node = node.NextSibling() {
		heading, isHeading := node.(*ast.Heading)
		switch {
		case isHeading && heading.Level == 2:
			before, title = title, string(heading.Lines().Value(source))
		case title == "Questions":
			answers += bytes.Count(node.Lines().Value(source), []byte("<details><summary>"))
		case title == "Further reading" && node.Kind() == ast.KindList:
			readings += explained(node, source)
		}
	}
	var problems []string
	if before != "Questions" || title != "Further reading" {
		problems = append(problems, fmt.Sprintf("its last sections are not Questions and Further reading: %q, %q", before, title))
	}
	if answers < 2 {
		problems = append(problems, fmt.Sprintf("it has %d questions with folded answers, want two at least", answers))
	}
	if readings != 3 {
		problems = append(problems, fmt.Sprintf("it has %d further readings with a link and a word on why, want three", readings))
	}
	return problems
}

var link = regexp.MustCompile(`\[[^]]*\]\([^)]*\)`)

// explained counts the items of a list that have a link, and some words beside it.
func explained(list ast.Node, source []byte) (count int) {
	for item := list.FirstChild(); item != nil; item = item.NextSibling() {
		if !item.HasChildren() {
			continue
		}
		reading := item.FirstChild().Lines().Value(source)
		if link.Match(reading) && len(bytes.Fields(link.ReplaceAll(reading, nil))) >= 5 {
			count++
		}
	}
	return count
}
