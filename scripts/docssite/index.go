package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// section is what the search finds: a part of a page under one heading.
type section struct {
	URL   string `json:"url"`
	Page  string `json:"page"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

// writeIndex writes what the search looks through: the chapters and all other text, as it was rendered, so that the
// anchors are right. It is a script and not data, so that it can be read from the disk too.
func writeIndex(site string, pages []*page) error {
	var sections []section
	for _, p := range pages {
		if p.Kind == source || p.Kind == folder || p.Kind == picture {
			continue
		}
		content, err := os.ReadFile(filepath.Join(site, filepath.FromSlash(p.URL)))
		if err != nil {
			return fmt.Errorf("reading a page for the search: %w", err)
		}
		found, err := sectionsOf(content, p)
		if err != nil {
			return fmt.Errorf("reading %s for the search: %w", p.URL, err)
		}
		sections = append(sections, found...)
	}
	data, err := json.Marshal(sections)
	if err != nil {
		return fmt.Errorf("writing the index of the search: %w", err)
	}
	return writeFile(filepath.Join(site, "search-index.js"), fmt.Appendf(nil, "window.searchIndex = %s;\n", data))
}

func sectionsOf(content []byte, p *page) ([]section, error) {
	tree, err := html.Parse(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	r := &sectionReader{page: p}
	for node := range tree.Descendants() {
		if node.DataAtom == atom.Article {
			r.read(node)
		}
	}
	r.end()
	return r.sections, nil
}

type sectionReader struct {
	page     *page
	sections []section
	now      section
	text     strings.Builder
}

func (r *sectionReader) read(node *html.Node) {
	for child := range node.ChildNodes() {
		switch {
		case child.Type == html.TextNode:
			r.text.WriteString(child.Data)
		case child.DataAtom == atom.H1 || child.DataAtom == atom.H2 || child.DataAtom == atom.H3:
			r.end()
			r.now = section{URL: r.page.URL, Page: r.page.Title, Title: headingText(child)}
			if id := attribute(child, "id"); id != "" && child.DataAtom != atom.H1 {
				r.now.URL += "#" + id
			}
		case attribute(child, "class") == "diagram":
			// The language of diagrams is not what a reader looks for.
		case child.Type == html.ElementNode:
			r.read(child)
			if isBlock(child) {
				r.text.WriteByte(' ')
			}
		}
	}
}

// end keeps the section that was read.
func (r *sectionReader) end() {
	r.now.Text = strings.Join(strings.Fields(r.text.String()), " ")
	r.text.Reset()
	if r.now.URL != "" {
		r.sections = append(r.sections, r.now)
	}
	r.now = section{}
}

// isBlock reports whether the words before and after the end of an element are two.
func isBlock(node *html.Node) bool {
	switch node.DataAtom {
	case atom.P, atom.Li, atom.Td, atom.Th, atom.Pre, atom.Div, atom.Summary, atom.Br:
		return true
	}
	return false
}

func headingText(node *html.Node) string {
	var words strings.Builder
	for part := range node.Descendants() {
		if part.Type == html.TextNode && attribute(part.Parent, "class") != "anchor" {
			words.WriteString(part.Data)
		}
	}
	return strings.TrimSpace(words.String())
}

func attribute(node *html.Node, name string) string {
	for _, a := range node.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
