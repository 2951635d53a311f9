// Command mdlinks reads the Markdown files named on its command line and reports links that lead
// nowhere inside the repository: to a file that is not there, or to a heading that a file does not
// have. Links to other sites are not followed.
package main

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

func main() {
	dead, err := check(os.DirFS("."), os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "mdlinks:", err)
		os.Exit(2)
	}
	for _, line := range dead {
		fmt.Fprintln(os.Stderr, line)
	}
	if len(dead) > 0 {
		os.Exit(1)
	}
}

// document is what other files can link to, and what it links to itself.
type document struct {
	links    []string
	headings map[string]bool
}

// check returns one line for each dead link in the files. It fails if a file cannot be read.
func check(root fs.FS, files []string) (dead []string, err error) {
	for _, file := range files {
		file = filepath.ToSlash(filepath.Clean(file))
		doc, err := read(root, file)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		for _, link := range doc.links {
			if reason := follow(root, file, link); reason != "" {
				dead = append(dead, fmt.Sprintf("%s: the link to %s is dead: %s", file, link, reason))
			}
		}
	}
	return dead, nil
}

// follow returns why a link in a file leads nowhere, or nothing if it leads somewhere.
func follow(root fs.FS, file, link string) string {
	target, err := url.Parse(link)
	if err != nil {
		return err.Error()
	}
	if target.Scheme != "" || target.Host != "" {
		return ""
	}
	to := file
	if target.Path != "" {
		to = path.Join(path.Dir(file), target.Path)
	}
	if _, err := fs.Stat(root, to); err != nil {
		return "there is no " + to
	}
	if target.Fragment == "" || path.Ext(to) != ".md" {
		return ""
	}
	doc, err := read(root, to)
	if err != nil {
		return err.Error()
	}
	if !doc.headings[target.Fragment] {
		return to + " has no such heading"
	}
	return ""
}

func read(root fs.FS, file string) (document, error) {
	source, err := fs.ReadFile(root, file)
	if err != nil {
		return document{}, err
	}
	doc := document{headings: map[string]bool{}}
	tree := goldmark.New(goldmark.WithParserOptions(parser.WithAutoHeadingID())).Parser().Parse(text.NewReader(source))
	err = ast.Walk(tree, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.Link:
			doc.links = append(doc.links, string(node.Destination))
		case *ast.Image:
			doc.links = append(doc.links, string(node.Destination))
		case *ast.Heading:
			if id, found := node.AttributeString("id"); found {
				doc.headings[string(id.([]byte))] = true
			}
		}
		return ast.WalkContinue, nil
	})
	return doc, err
}
