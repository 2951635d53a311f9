package docstest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
	"golang.org/x/mod/modfile"
)

// Source is what a document says of a source file: that it is there, and has these names in it. They are the code in
// the text of a link.
type Source struct {
	Link  string
	Names []string
}

// Sources are the links of a document to Go files.
func Sources(source []byte) []Source {
	var found []Source
	_ = ast.Walk(markdown.Parser().Parse(text.NewReader(source)), func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		link, isLink := node.(*ast.Link)
		if !isLink || !entering {
			return ast.WalkContinue, nil
		}
		to, _, _ := strings.Cut(string(link.Destination), "#")
		if strings.HasSuffix(to, ".go") {
			found = append(found, Source{Link: to, Names: names(link, source)})
		}
		return ast.WalkContinue, nil
	})
	return found
}

// names are the last parts of what looks like Go in the text of a link: Backoff of `Manager.Backoff`.
func names(link *ast.Link, source []byte) []string {
	var found []string
	for child := link.FirstChild(); child != nil; child = child.NextSibling() {
		code, isCode := child.(*ast.CodeSpan)
		if !isCode {
			continue
		}
		var content strings.Builder
		for part := code.FirstChild(); part != nil; part = part.NextSibling() {
			if segment, isText := part.(*ast.Text); isText {
				content.Write(segment.Segment.Value(source))
			}
		}
		if name := identifier.FindStringSubmatch(content.String()); name != nil {
			found = append(found, name[1])
		}
	}
	return found
}

var identifier = regexp.MustCompile(`^(?:[\w\[\]*]+\.)*(\w+)(?:\[\w+\])?(?:\(\))?$`)

// upstream is a file of a library at a version, as GitHub shows it.
var upstream = regexp.MustCompile(`^https://github\.com/(kubernetes|kubernetes-sigs)/([\w.-]+)/blob/([^/]+)/(.+)$`)

// Library finds files of libraries at the versions that the repository builds with.
type Library struct {
	versions map[string]string
	folders  map[string]string
}

// NewLibrary reads the versions from go.mod files.
func NewLibrary(modFiles ...string) (*Library, error) {
	l := &Library{versions: map[string]string{}, folders: map[string]string{}}
	for _, name := range modFiles {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading the versions: %w", err)
		}
		parsed, err := modfile.Parse(name, content, nil)
		if err != nil {
			return nil, fmt.Errorf("reading the versions: %w", err)
		}
		for _, require := range parsed.Require {
			l.versions[require.Mod.Path] = require.Mod.Version
		}
	}
	return l, nil
}

// Check tells what is wrong with a claim that a document in a folder makes; nil is nothing.
func (l *Library) Check(ctx context.Context, dir string, claim Source) error {
	file := filepath.Join(dir, claim.Link)
	if parts := upstream.FindStringSubmatch(claim.Link); parts != nil {
		folder, err := l.folder(ctx, parts[1], parts[2], parts[3])
		if err != nil {
			return fmt.Errorf("%s: %w", claim.Link, err)
		}
		file = filepath.Join(folder, parts[4])
	} else if strings.Contains(claim.Link, "://") {
		return nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%s: there is no such file", claim.Link)
	}
	for _, name := range claim.Names {
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).Match(content) {
			return fmt.Errorf("%s: there is no %s in it", claim.Link, name)
		}
	}
	return nil
}

// folder is where a library is, in Go's module cache.
func (l *Library) folder(ctx context.Context, owner, name, version string) (string, error) {
	module := "k8s.io/" + name
	if owner == "kubernetes-sigs" {
		module = "sigs.k8s.io/" + name
	}
	switch pinned := l.versions[module]; {
	case pinned == "":
		return "", fmt.Errorf("%s is no library that the stages build with", module)
	case pinned != version:
		return "", fmt.Errorf("the stages build with %s", pinned)
	}
	if folder := l.folders[module]; folder != "" {
		return folder, nil
	}
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module+"@"+version)
	// Outside every workspace: it is not asked what this one needs.
	cmd.Dir = os.TempDir()
	cmd.Env = append(os.Environ(), "GOWORK=off")
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("downloading %s: %w", module, err)
	}
	var answer struct{ Dir string }
	if err := json.Unmarshal(output, &answer); err != nil {
		return "", fmt.Errorf("downloading %s: %w", module, err)
	}
	l.folders[module] = answer.Dir
	return answer.Dir, nil
}
