package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// What a page shows: it decides how it is drawn.
const (
	start   = "start"
	chapter = "chapter"
	guide   = "guide"   // any other page of the book: what a reader looks up
	article = "article" // a Markdown file outside of docs/
	source  = "source"  // any other file, with the colours of its language
	folder  = "folder"
	picture = "picture" // a file of the site, and no page
)

// page is one page of the site, made of a file or a folder of the repository.
type page struct {
	Source string // its path in the repository
	Kind   string
	URL    string // from the root of the site
	Title  string
	Weight int // its place: the order of the paths
	// Listed reports whether every page links to it, though it is no chapter.
	Listed  bool
	Entries []string // of a folder
	// Exercises are those that a stage's list of them links to, in its order.
	Exercises []string
	Content   []byte
}

const startPage = "docs/README.md"

var (
	chapterName = regexp.MustCompile(`^docs/[0-9]{2}-[^/]*\.md$`)
	guideName   = regexp.MustCompile(`^docs/[a-z]+\.md$`)
)

// listed is what every page links to besides the chapters.
var listed = regexp.MustCompile(`^(README\.md|0[1-4]-[a-z]+/README\.md|shared/README\.md)$`)

var (
	exerciseList = regexp.MustCompile(`^0[1-4]-[a-z]+/exercises/README\.md$`)
	exerciseTask = regexp.MustCompile(`/exercises/(?:[0-9]{2}[a-z]|capstone)-[^/]+/README\.md$`)
)

// listFiles lists what git tracks, and what it would if you added it.
func listFiles(ctx context.Context, repo string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "git", "-C", repo, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the files of the repository: %w", err)
	}
	files := strings.Split(strings.TrimSuffix(string(output), "\x00"), "\x00")
	slices.Sort(files)
	return slices.Compact(files), nil
}

// collector finds all pages: the chapters, what they link to, what that links to, and so on.
type collector struct {
	repo    fs.FS
	entries map[string][]string // of each folder
	pages   map[string]*page
	queue   []string
	errs    []error
}

func collect(repo fs.FS, files []string) ([]*page, error) {
	c := &collector{repo: repo, entries: map[string][]string{}, pages: map[string]*page{}}
	for _, file := range files {
		if _, err := fs.Stat(repo, file); err != nil {
			continue // deleted, and git was not told yet
		}
		for name := file; name != "."; name = path.Dir(name) {
			dir := path.Dir(name)
			if !slices.Contains(c.entries[dir], path.Base(name)) {
				c.entries[dir] = append(c.entries[dir], path.Base(name))
			}
		}
		if file == startPage || chapterName.MatchString(file) || guideName.MatchString(file) || listed.MatchString(file) ||
			exerciseList.MatchString(file) {
			c.queue = append(c.queue, file)
		}
	}
	for len(c.queue) > 0 {
		next := c.queue[0]
		c.queue = c.queue[1:]
		c.add(next)
	}
	pages := make([]*page, 0, len(c.pages))
	for _, p := range c.pages {
		pages = append(pages, p)
	}
	slices.SortFunc(pages, func(a, b *page) int { return strings.Compare(a.Source, b.Source) })
	for i, p := range pages {
		p.Weight = i + 1
	}
	if c.pages[startPage] == nil {
		c.errs = append(c.errs, fmt.Errorf("%s, the start page, is missing", startPage))
	}
	return pages, errors.Join(c.errs...)
}

// add makes the page of a file or folder, and puts what it links to into the queue.
func (c *collector) add(name string) {
	if c.pages[name] != nil {
		return
	}
	p := &page{Source: name, Title: name}
	c.pages[name] = p
	switch entries, isFolder := c.entries[name]; {
	case isFolder:
		p.Kind, p.URL, p.Entries = folder, "/repository/"+name+"/index.html", entries
		// Its files are a click away. What is deeper has a page if something else links to it.
		for _, entry := range entries {
			if file := path.Join(name, entry); c.entries[file] == nil {
				c.queue = append(c.queue, file)
			}
		}
		return
	case name == startPage:
		p.Kind, p.URL = start, "/index.html"
	case chapterName.MatchString(name):
		p.Kind, p.URL = chapter, "/"+strings.TrimSuffix(path.Base(name), ".md")+".html"
	case guideName.MatchString(name):
		p.Kind, p.URL = guide, "/"+strings.TrimSuffix(path.Base(name), ".md")+".html"
	case path.Ext(name) == ".png":
		p.Kind, p.URL = picture, "/repository/"+name
	case path.Ext(name) == ".md":
		p.Kind, p.URL = article, "/repository/"+name+".html"
		p.Listed = listed.MatchString(name)
	default:
		p.Kind, p.URL = source, "/repository/"+name+".html"
	}
	content, err := fs.ReadFile(c.repo, name)
	if err != nil {
		c.errs = append(c.errs, fmt.Errorf("reading what the site shows: %w", err))
		return
	}
	p.Content = content
	if p.Kind != source && p.Kind != picture {
		c.follow(p)
	}
}

// follow reads the title of a Markdown file, and where its links lead.
func (c *collector) follow(p *page) {
	tree := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(p.Content))
	_ = ast.Walk(tree, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		switch node := node.(type) {
		case *ast.Heading:
			if entering && node.Level == 1 && p.Title == p.Source {
				p.Title = plain(node, p.Content)
			}
		case *ast.Link:
			if entering {
				c.link(p, string(node.Destination))
			}
		case *ast.Image:
			if entering {
				c.link(p, string(node.Destination))
			}
		}
		return ast.WalkContinue, nil
	})
}

func (c *collector) link(p *page, destination string) {
	target, err := url.Parse(destination)
	if err != nil {
		c.errs = append(c.errs, fmt.Errorf("%s: the link to %s cannot be read: %w", p.Source, destination, err))
		return
	}
	if target.IsAbs() || target.Host != "" || target.Path == "" {
		return
	}
	to := path.Join(path.Dir(p.Source), target.Path)
	if exerciseList.MatchString(p.Source) && exerciseTask.MatchString(to) && !slices.Contains(p.Exercises, to) {
		p.Exercises = append(p.Exercises, to)
	}
	if !slices.Contains(c.entries[path.Dir(to)], path.Base(to)) {
		c.errs = append(c.errs, fmt.Errorf("%s: the link to %s is dead: there is no %s in the repository", p.Source, destination, to))
		return
	}
	c.queue = append(c.queue, to)
}

// plain is the text of a node without its marks.
func plain(node ast.Node, content []byte) string {
	var words strings.Builder
	_ = ast.Walk(node, func(part ast.Node, entering bool) (ast.WalkStatus, error) {
		if part, isText := part.(*ast.Text); isText && entering {
			words.Write(part.Value(content))
		}
		return ast.WalkContinue, nil
	})
	return words.String()
}
