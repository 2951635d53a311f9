package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// site is what Hugo needs besides the pages: configuration, templates, styles and scripts.
//
//go:embed all:site
var site embed.FS

// writeProject writes a project for Hugo into a folder: ours, and the pages.
func writeProject(work string, pages []*page) error {
	err := fs.WalkDir(site, "site", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := site.ReadFile(name)
		if err != nil {
			return err
		}
		return writeFile(filepath.Join(work, filepath.FromSlash(strings.TrimPrefix(name, "site/"))), content)
	})
	if err != nil {
		return fmt.Errorf("writing the project for Hugo: %w", err)
	}
	known := map[string]target{}
	for _, p := range pages {
		known[p.Source] = target{URL: p.URL, Title: p.Title, Lines: declarations(p)}
		if err := writePage(work, p); err != nil {
			return fmt.Errorf("writing %s for Hugo: %w", p.Source, err)
		}
	}
	data, err := json.Marshal(known)
	if err != nil {
		return fmt.Errorf("writing what pages there are: %w", err)
	}
	return writeFile(filepath.Join(work, "data", "pages.json"), data)
}

// target is where a link to a file leads.
type target struct {
	URL   string `json:"url"`
	Title string `json:"title"`
	// Lines are where a Go file declares what a link's text may name.
	Lines map[string]int `json:"lines"`
}

// writePage writes what Hugo is told about a page, and its text. The text of a file that is shown as it is comes from
// source/: it is not Markdown.
func writePage(work string, p *page) error {
	matter := map[string]any{
		"title": p.Title, "weight": p.Weight, "url": p.URL,
		"params": map[string]any{
			"kind": p.Kind, "source": p.Source, "listed": p.Listed, "entries": p.Entries, "language": language(p.Source),
			"exercises": p.Exercises,
		},
	}
	head, err := json.MarshalIndent(matter, "", " ")
	if err != nil {
		return err
	}
	// Every page has its address in url. Names of our own, as Hugo has its ideas about some, those with a dot first, say.
	name := fmt.Sprintf("%04d.md", p.Weight)
	if p.Kind == start {
		name = "_index.md"
	}
	content := filepath.Join(work, "content", name)
	switch p.Kind {
	case picture:
		return writeFile(filepath.Join(work, "static", filepath.FromSlash(p.URL)), p.Content)
	case source:
		if err := writeFile(filepath.Join(work, "source", filepath.FromSlash(p.Source)), p.Content); err != nil {
			return err
		}
		return writeFile(content, head)
	case folder:
		return writeFile(content, head)
	}
	body, err := prepare(p)
	if err != nil {
		return err
	}
	return writeFile(content, append(append(head, "\n\n"...), body...))
}

var (
	fence      = regexp.MustCompile("^ {0,3}(```+)(.*)$")
	embedmd    = []byte("[embedmd]:#")
	shortcodes = regexp.MustCompile(`\{\{[<%]`)
	option     = regexp.MustCompile(`([a-z]+)(?:=("[^"]*"|\S+))?`)
)

// prepare makes Hugo's Markdown of ours. Lines for embedmd are left out, and what a block of commands says to docstest
// becomes a note to the reader.
func prepare(p *page) ([]byte, error) {
	if at := shortcodes.FindIndex(p.Content); at != nil {
		return nil, fmt.Errorf("line %d would be a shortcode of Hugo's", 1+bytes.Count(p.Content[:at[0]], []byte("\n")))
	}
	var out bytes.Buffer
	open := ""
	for line := range bytes.Lines(p.Content) {
		found := fence.FindSubmatch(bytes.TrimRight(line, "\n"))
		switch {
		case open == "" && bytes.HasPrefix(line, embedmd):
			continue
		case open == "" && found != nil:
			open = string(found[1])
			if words := strings.TrimSpace(string(found[2])); words != "" {
				fmt.Fprintf(&out, "%s%s\n", open, info(words))
				continue
			}
		case found != nil && string(found[1]) == open && len(bytes.TrimSpace(found[2])) == 0:
			open = ""
		}
		out.Write(line)
	}
	return out.Bytes(), nil
}

// info is the first line of a block with a note made of its options.
func info(words string) string {
	language, options, _ := strings.Cut(words, " ")
	var notes []string
	for _, found := range option.FindAllStringSubmatch(options, -1) {
		switch found[1] {
		case "kind":
			notes = append(notes, "needs containers")
		case "fails":
			notes = append(notes, "ends with an error")
		case "terminal":
			notes = append(notes, "terminal: "+strings.Trim(found[2], `"`))
		}
	}
	if len(notes) == 0 {
		return language
	}
	return fmt.Sprintf("%s {note=%q}", language, strings.Join(notes, ", "))
}

// languages are those whose names are not the endings of files.
var languages = map[string]string{
	"Makefile": "make", "Dockerfile": "docker", ".mk": "make", ".md": "markdown", ".mod": "go", ".work": "go", ".tmpl": "go-template",
	".env": "sh", ".sh": "sh", ".js": "js", ".css": "css", ".yml": "yaml", ".html": "html", "PROJECT": "yaml",
}

func language(name string) string {
	for _, key := range []string{path.Base(name), path.Ext(name)} {
		if found := languages[key]; found != "" {
			return found
		}
	}
	if ending := strings.TrimPrefix(path.Ext(name), "."); ending != "" {
		return ending
	}
	return "text"
}

// declarations are the lines of what a Go file declares; methods of several types with one name are left out.
func declarations(p *page) map[string]int {
	lines := map[string]int{}
	if path.Ext(p.Source) != ".go" {
		return lines
	}
	positions := token.NewFileSet()
	file, err := parser.ParseFile(positions, p.Source, p.Content, parser.SkipObjectResolution)
	if err != nil {
		return lines // it is shown all the same
	}
	twice := map[string]bool{}
	declare := func(name string, at token.Pos) {
		twice[name] = lines[name] != 0
		lines[name] = positions.Position(at).Line
	}
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			declare(d.Name.Name, d.Pos())
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					declare(spec.Name.Name, spec.Pos())
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						declare(name.Name, name.Pos())
					}
				}
			}
		}
	}
	for name := range twice {
		if twice[name] {
			delete(lines, name)
		}
	}
	return lines
}
