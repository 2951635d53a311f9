package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// siteDir is where the site is that is tested.
func siteDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SITE")
	if dir == "" {
		t.Skip("make docs-site-test makes the site and tests it")
	}
	if info, err := os.Stat(filepath.Join(dir, "mermaid.min.js")); err != nil || info.Size() == 0 {
		t.Fatalf("the site is without the script that draws its diagrams: install npm, and run make docs-site again (%v)", err)
	}
	return dir
}

// chapters are the addresses of the chapters that there are in docs/, not of those that the site has.
func chapters(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../docs/[0-9][0-9]-*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no chapters (%v)", err)
	}
	addresses := make([]string, 0, len(files))
	for _, file := range files {
		addresses = append(addresses, "/"+strings.TrimSuffix(filepath.Base(file), ".md")+".html")
	}
	return addresses
}

// guides are the addresses of what else there is in docs/, besides the start page.
func guides(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../docs/[a-z]*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no guides (%v)", err)
	}
	addresses := make([]string, 0, len(files))
	for _, file := range files {
		addresses = append(addresses, "/"+strings.TrimSuffix(filepath.Base(file), ".md")+".html")
	}
	return addresses
}

// texts are the pages with text of ours.
func texts(t *testing.T) []string {
	t.Helper()
	return slices.Concat([]string{"/index.html", "/repository/README.md.html", "/repository/02-lolcow/README.md.html"}, guides(t), chapters(t))
}

// document is a page of the site, as it is on the disk.
type document struct {
	ids   map[string]bool
	links []string // where its links, scripts and styles are
	loads []string // those of them that the browser loads by itself
	words string   // outside of blocks of code
}

func readSite(t *testing.T) map[string]*document {
	t.Helper()
	documents := map[string]*document{}
	dir := siteDir(t)
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".html" {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		tree, err := html.Parse(bytes.NewReader(content))
		if err != nil {
			return err
		}
		address, err := filepath.Rel(dir, name)
		documents["/"+filepath.ToSlash(address)] = readDocument(tree)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return documents
}

func readDocument(tree *html.Node) *document {
	d := &document{ids: map[string]bool{}}
	var words strings.Builder
	for node := range tree.Descendants() {
		if node.Type == html.TextNode && node.Parent.Data != "code" && node.Parent.Data != "span" && node.Parent.Data != "pre" {
			words.WriteString(node.Data)
		}
		for _, a := range node.Attr {
			switch a.Key {
			case "id":
				d.ids[a.Val] = true
			case "href", "src":
				d.links = append(d.links, a.Val)
				if node.Data != "a" {
					d.loads = append(d.loads, a.Val)
				}
			}
		}
	}
	d.words = words.String()
	return d
}

// TestLinks follows every link of every page, on the disk.
func TestLinks(t *testing.T) {
	t.Parallel()
	dir, documents := siteDir(t), readSite(t)
	followed := 0
	for address, d := range documents {
		for _, link := range d.links {
			target, err := url.Parse(link)
			if err != nil {
				t.Errorf("%s: %v", address, err)
				continue
			}
			if target.IsAbs() {
				continue
			}
			followed++
			if err := follow(dir, documents, address, target); err != nil {
				t.Errorf("%s: the link to %s is dead: %v", address, link, err)
			}
		}
		for _, load := range d.loads {
			if strings.Contains(load, "//") {
				t.Errorf("%s loads %s", address, load)
			}
		}
		if strings.Contains(d.words, "[embedmd]") {
			t.Errorf("%s shows a line for embedmd", address)
		}
	}
	if wanted := 10 * len(chapters(t)); followed < wanted {
		t.Errorf("only %d links were followed, want at least %d", followed, wanted)
	}
	t.Logf("%d pages, %d links", len(documents), followed)
}

func follow(dir string, documents map[string]*document, from string, target *url.URL) error {
	to := from
	if target.Path != "" {
		to = path.Join(path.Dir(from), target.Path)
	}
	if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(to))); err != nil {
		return err
	}
	if target.Fragment != "" && (documents[to] == nil || !documents[to].ids[target.Fragment]) {
		return fmt.Errorf("%s has no #%s", to, target.Fragment)
	}
	return nil
}

// TestChaptersAreThere looks for each chapter, in order, on each page.
func TestChaptersAreThere(t *testing.T) {
	t.Parallel()
	documents := readSite(t)
	order := chapters(t)
	for i, address := range order {
		d := documents[address]
		if d == nil {
			t.Errorf("%s is not there", address)
			continue
		}
		all := strings.Join(d.links, " ")
		last := -1
		for _, other := range order {
			at := strings.Index(all, "./"+strings.TrimPrefix(other, "/")+" ")
			if at <= last {
				t.Errorf("%s: %s is not linked in its place", address, other)
			}
			last = at
		}
		for _, neighbour := range []int{i - 1, i + 1} {
			if neighbour >= 0 && neighbour < len(order) && strings.Count(all, "./"+strings.TrimPrefix(order[neighbour], "/")) < 2 {
				t.Errorf("%s: %s is not linked as the one before or after", address, order[neighbour])
			}
		}
	}
}

// TestGuidesAreThere looks for a link to each guide on each page.
func TestGuidesAreThere(t *testing.T) {
	t.Parallel()
	documents := readSite(t)
	for address, d := range documents {
		for _, guide := range guides(t) {
			if !slices.ContainsFunc(d.links, func(link string) bool { return path.Join(path.Dir(address), link) == guide }) {
				t.Errorf("%s does not link to %s", address, guide)
			}
		}
	}
}

// TestPages looks at the pages with a reader's eyes, on a desktop and on a phone.
func TestPages(t *testing.T) {
	home := serveSite(t, siteDir(t))
	chromium := startBrowser(t)
	more := []string{"/repository/01-informers/internal/raw/loop.go.html", "/repository/01-informers/internal/foo/index.html", "/repository/02-lolcow/Makefile.html"}
	for name, size := range map[string]action{"desktop": desktop, "phone": phone} {
		t.Run(name, func(t *testing.T) {
			p := chromium.open(t, home, size)
			for _, address := range append(texts(t), more...) {
				t.Run(path.Base(address), func(t *testing.T) {
					p.visit(t, address)
					p.checkPage(t, address)
				})
			}
		})
	}
}

var mermaidBlock = regexp.MustCompile("(?m)^```mermaid$")

func (p *tab) checkPage(t *testing.T, address string) {
	t.Helper()
	if title := evaluate[string](t, p, `document.querySelector("h1").innerText`); title == "" {
		t.Error("it has no title")
	}
	// As far as a finger could push it: a page that is wider than the window is pushed.
	if pushed := evaluate[float64](t, p, `(scrollTo(10000, 0), scrollX)`); pushed != 0 {
		wide := evaluate[string](t, p, `[...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > innerWidth + scrollX)
			.map((one) => one.outerHTML.slice(0, 100)).slice(0, 5).join("\n")`)
		t.Errorf("the page is %v pixels wider than the window:\n%s", pushed, wide)
	}
	if found := evaluate[int](t, p, `[...document.querySelectorAll(".text details")].filter((one) => one.open).length`); found > 0 {
		t.Errorf("%d answers are open before they are asked for", found)
	}
	if broken := evaluate[string](t, p, `[...document.images].filter((one) => !one.complete || one.naturalWidth === 0).map((one) => one.src).join(" ")`); broken != "" {
		t.Errorf("pictures are not shown: %s", broken)
	}
	markdown, err := os.ReadFile(filepath.Join("../../docs", strings.TrimSuffix(path.Base(address), ".html")+".md"))
	if err != nil {
		return // it is no chapter
	}
	diagrams := len(mermaidBlock.FindAll(markdown, -1))
	if found := evaluate[int](t, p, `document.querySelectorAll(".diagram svg").length`); found != diagrams {
		t.Errorf("%d of %d diagrams are drawn", found, diagrams)
	}
	if wrong := evaluate[string](t, p, `[...document.querySelectorAll(".diagram")].map((one) => one.innerText).join(" ").match(/syntax error|parse error|mermaid version/i)?.[0] ?? ""`); wrong != "" {
		t.Errorf("a diagram says %q", wrong)
	}
	if bytes.Contains(markdown, []byte("<details>")) {
		hidden := `(() => { const one = document.querySelector(".text details"); const text = one.lastElementChild; const before = text.checkVisibility();
			one.querySelector("summary").click(); const after = text.checkVisibility(); one.open = false; return !before && after; })()`
		if !evaluate[bool](t, p, hidden) {
			t.Error("an answer does not fold")
		}
	}
	if bytes.Contains(markdown, []byte("```sh")) && evaluate[int](t, p, `document.querySelectorAll(".code-sh .chroma span[class]:not(.line):not(.cl)").length`) == 0 {
		t.Error("commands have no colours")
	}
}
