package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/modfile"
)

// harness is where a copy keeps what of the repository a stage needs to run on a cluster.
const harness = "hack/harness"

// origin is a file of the repository, and where it goes in the copy.
type origin struct {
	file string // relative to the repository
	name string // what rules of hack/starter.yaml call it: relative to the stage, or to the repository
	to   string // relative to the copy, before it is renamed
}

// plan lists what is copied: the stage but for its exercises and the book's tests, the harness, the files of the top level
// that both need.
func plan(ctx context.Context, repo string, s *stage) ([]origin, error) {
	var out []origin
	for _, file := range s.files {
		if strings.HasPrefix(file, "exercises/") || file == "README.md" || file == "hack/starter.yaml" ||
			forBookOnly.MatchString(file) {
			continue
		}
		out = append(out, origin{path.Join(s.dir, file), file, file})
	}
	for _, dir := range []string{"shared", "scripts"} {
		files, err := tracked(ctx, repo, dir)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			file = path.Join(dir, file)
			if !forRepositoryOnly.MatchString(file) {
				out = append(out, origin{file, file, path.Join(harness, file)})
			}
		}
	}
	for _, file := range []string{".gitattributes", ".gitignore", ".golangci.yml", "LICENSE"} {
		out = append(out, origin{file, file, file})
	}
	return out, nil
}

// forBookOnly are tests that settle a question of the book, not whether the stage works.
var forBookOnly = regexp.MustCompile(`/seed_\w+_test\.go$`)

// forRepositoryOnly are the scripts that are about all stages, not about one, and what runs exercises.
var forRepositoryOnly = regexp.MustCompile(`^shared/(exercise/|cmd/exercises-check/)|^scripts/(docssite/|docstest/|learn/|my-lolcow\.sh|starter/|tools/elsewhere/|tools/hugo/|tools/kubebuilder/|tools/mdlinks/|tools/skeleton/|tools/words/|verify-.*|copy-tree\.sh|files\.sh|lines\.sh|stage\.sh|test\.sh|vuln\.sh)`)

// write puts the copy into dest, renamed. It returns where each file of the copy comes from.
func write(repo, dest string, o options, s *stage, r *renamer, origins []origin) (map[string]origin, error) {
	from := map[string]origin{}
	for _, f := range origins {
		to := r.text(place{file: f.name, part: "path"}, f.to)
		if other, taken := from[to]; taken {
			return nil, fmt.Errorf("KIND=%s: %s and %s would both be called %s; choose another kind", o.Kind, other.file, f.file, to)
		}
		from[to] = f
		if err := writeFile(repo, filepath.Join(dest, filepath.FromSlash(to)), o, s, r, f); err != nil {
			return nil, fmt.Errorf("copying %s: %w", f.file, err)
		}
	}
	return from, nil
}

func writeFile(repo, target string, o options, s *stage, r *renamer, f origin) error {
	source := filepath.Join(repo, f.file)
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	if content, err = r.rewrite(f.name, content); err != nil {
		return err
	}
	if content, err = settle(f, content, o, s); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	return os.WriteFile(target, content, info.Mode().Perm())
}

// settle makes the few changes that follow from the new place, not from a new name.
func settle(f origin, content []byte, o options, s *stage) ([]byte, error) {
	switch {
	case path.Base(f.to) == "go.mod":
		return relocate(f, content)
	case f.to == "Makefile":
		content, err := cut(content, "# ")
		if err != nil {
			return nil, err
		}
		return setVariable(content, "HARNESS ?= ", harness)
	case f.to == path.Join(harness, "shared/config/harness.env"):
		return setVariable(content, "PROJECT=", o.cluster())
	case f.to == "PROJECT":
		return setDomain(content, s.Domain, o.Domain), nil
	case strings.HasSuffix(f.to, ".go"):
		content, err := cut(content, "// ")
		return setShortNames(content, s, o.Kind), err
	case strings.HasPrefix(f.to, "config/crd/"):
		return setShortNames(content, s, o.Kind), nil
	}
	return content, nil
}

// Comments around what a copy has not, in a Makefile and in Go.
const (
	cutBegin = "starter: not in a copy"
	cutEnd   = "starter: end"
)

// cut leaves out what stands between these comments. In Go they may be indented: in a Makefile that would be a command.
func cut(content []byte, comment string) ([]byte, error) {
	var out []byte
	begin, end := comment+cutBegin, comment+cutEnd
	inside := false
	for line := range bytes.Lines(content) {
		text := strings.TrimSuffix(string(line), "\n")
		if comment == "// " {
			text = strings.TrimLeft(text, "\t")
		}
		switch {
		case text == begin && inside, text == end && !inside:
			return nil, fmt.Errorf("a line %q where there is none to pair it with", text)
		case text == begin, text == end:
			inside = !inside
		case !inside:
			out = append(out, line...)
		}
	}
	if inside {
		return nil, fmt.Errorf("no line %q after %q", end, begin)
	}
	return out, nil
}

// relocate points the replacements of a go.mod at the folders' new places.
func relocate(f origin, content []byte) ([]byte, error) {
	mod, err := modfile.Parse(f.file, content, nil)
	if err != nil {
		return nil, err // it names the file
	}
	for _, replace := range mod.Replace {
		if !modfile.IsDirectoryPath(replace.New.Path) {
			continue
		}
		target := path.Join(path.Dir(f.file), replace.New.Path) // relative to the repository
		if target != "shared" {
			continue
		}
		moved, err := filepath.Rel(path.Dir(f.to), path.Join(harness, target))
		if err != nil {
			return nil, err // it names both
		}
		if moved = filepath.ToSlash(moved); !strings.HasPrefix(moved, ".") {
			moved = "./" + moved
		}
		line := replace.Syntax
		line.Token[len(line.Token)-1] = moved
	}
	return modfile.Format(mod.Syntax), nil
}

// setVariable gives the one line that begins with prefix a new value.
func setVariable(content []byte, prefix, value string) ([]byte, error) {
	line := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(prefix) + `.*$`)
	if found := len(line.FindAll(content, -1)); found != 1 {
		return nil, fmt.Errorf("%d lines begin with %q, not one", found, prefix)
	}
	return line.ReplaceAllLiteral(content, []byte(prefix+value)), nil
}

// setDomain replaces the domain of PROJECT, which a group is only a part of.
func setDomain(content []byte, old, domain string) []byte {
	line := regexp.MustCompile(`(?m)^(\s*(?:- )?domain: )` + regexp.QuoteMeta(old) + `$`)
	return line.ReplaceAll(content, []byte("${1}"+domain))
}

var shortNameMarker = regexp.MustCompile(`(\+kubebuilder:resource:\S*shortName=)([^,\s]+)`)

// setShortNames replaces the abbreviations for kubectl, in a marker of the types; the CRDs are made
// from these. The marker of a type stands in the comment above it.
func setShortNames(content []byte, s *stage, to string) []byte {
	for _, resource := range s.Resources {
		kind := s.renamedKind(resource.Kind, to)
		declaration := bytes.Index(content, []byte("\ntype "+kind+" struct"))
		if declaration < 0 {
			continue
		}
		markers := shortNameMarker.FindAllIndex(content[:declaration], -1)
		if len(markers) == 0 {
			continue
		}
		last := markers[len(markers)-1]
		marker := shortNameMarker.ReplaceAll(content[last[0]:last[1]], []byte("${1}"+shortName(kind, to)))
		content = bytes.Join([][]byte{content[:last[0]], marker, content[last[1]:]}, nil)
	}
	return content
}
