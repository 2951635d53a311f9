package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// leftovers reads a finished copy and reports every old name of the stage that is still in it. It
// looks for the letters of a name, in any case and with anything around them, so that it does not
// share the renamer's idea of where a name begins and ends. from says where each file comes from.
func leftovers(dest string, r *renamer, from map[string]origin) ([]string, error) {
	old := oldNames(r)
	if old == nil {
		return nil, nil
	}
	ours := newNames(r)
	sources := sourcesOf(from)
	var found []string
	// before and after are the lines around text: a generator may break a line where there was a blank, also inside of what
	// is kept.
	report := func(source, what, before, text, after string) {
		if !old.MatchString(text) {
			return
		}
		before, after = strings.TrimSpace(before)+" ", " "+strings.TrimSpace(after)
		text = strings.TrimSpace(text)
		joined := blank(ours, r.withoutKept(source, before+text+after))
		if old.MatchString(joined[len(before) : len(before)+len(text)]) {
			found = append(found, fmt.Sprintf("%s: %s", what, text))
		}
	}
	err := filepath.WalkDir(dest, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, _ := filepath.Rel(dest, file)
		relative = filepath.ToSlash(relative)
		if entry.IsDir() && slices.Contains([]string{".git", ".kube", "_artifacts", "bin"}, path.Base(relative)) {
			return fs.SkipDir
		}
		report(sources[relative], relative, "", path.Base(relative), "")
		if entry.IsDir() || path.Base(relative) == "go.sum" || relative == "LICENSE" {
			return nil
		}
		content, err := os.ReadFile(file)
		if err != nil || bytes.IndexByte(content, 0) >= 0 {
			return err
		}
		lines := append(append([]string{""}, strings.Split(string(content), "\n")...), "")
		for i := 1; i+1 < len(lines); i++ {
			report(sources[relative], fmt.Sprintf("%s:%d", relative, i), lines[i-1], lines[i], lines[i+1])
		}
		return nil
	})
	return found, err
}

// sourcesOf says what each file of a copy, and each folder, is called where it comes from.
func sourcesOf(from map[string]origin) map[string]string {
	sources := map[string]string{}
	for to, f := range from {
		for name := f.name; to != "." && name != "."; to, name = path.Dir(to), path.Dir(name) {
			sources[to] = name
		}
	}
	return sources
}

// oldNames matches what must not be left, or is nil if the new names are the old ones.
func oldNames(r *renamer) *regexp.Regexp {
	var parts []string
	for _, n := range r.names {
		switch {
		case n.old == n.new:
		case n.style == phrase:
			parts = append(parts, `\b`+regexp.QuoteMeta(strings.TrimSpace(n.old))+`\b`)
		case n.style == address:
			parts = append(parts, regexp.QuoteMeta(n.old))
		case len(n.old) >= 5: // long enough not to be a part of other words
			parts = append(parts, `(?i:`+regexp.QuoteMeta(n.old)+`)`)
		default:
			parts = append(parts, `\b`+n.old+`|`+n.old+`\b`)
		}
	}
	if parts == nil {
		return nil
	}
	return regexp.MustCompile(strings.Join(parts, "|"))
}

// newNames matches what the names have become: a module may well be called github.com/me/lolcow.
func newNames(r *renamer) *regexp.Regexp {
	var parts []string
	for _, n := range r.names {
		for _, s := range []string{n.new, n.beforeCapital} {
			if s != "" {
				parts = append(parts, regexp.QuoteMeta(s))
			}
		}
	}
	slices.SortFunc(parts, func(a, b string) int { return len(b) - len(a) })
	return regexp.MustCompile(strings.Join(parts, "|"))
}

// withoutKept blanks out what a rule keeps in a file. What a rule says of the part of the file is
// ignored: a line does not tell.
func (r *renamer) withoutKept(file, s string) string {
	for _, rule := range r.keep {
		if len(rule.Files) == 0 || anyOf(rule.Files, file, matchesFile) {
			s = blank(rule.pattern, s)
		}
	}
	return s
}

// blank puts blanks in place of what a pattern matches.
func blank(pattern *regexp.Regexp, s string) string {
	return pattern.ReplaceAllStringFunc(s, func(match string) string { return strings.Repeat(" ", len(match)) })
}

// taken returns which of the new names the stage's manifests use for something else already. In Go the compiler finds that.
func taken(repo string, s *stage, r *renamer) (string, error) {
	want := map[string]bool{}
	for _, n := range r.names {
		if n.old != n.new && (n.style == camel || n.style == lower) {
			want[n.new] = true
		}
	}
	for _, n := range r.names { // a name of the stage is free: it is about to go
		delete(want, n.old)
	}
	for _, file := range s.files {
		// The manifests of CRDs are made anew.
		if path.Ext(file) != ".yaml" || strings.HasPrefix(file, "config/crd/") || strings.HasPrefix(file, "exercises/") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(repo, s.dir, file))
		if err != nil {
			return "", err
		}
		if used := valueOf(content, want); used != "" {
			return fmt.Sprintf("%s is used in %s/%s already", used, s.dir, file), nil
		}
	}
	return "", nil
}

// valueOf returns the first of the wanted names that is a value of a manifest.
func valueOf(content []byte, want map[string]bool) string {
	fields, err := scalars(content)
	if err != nil {
		return "" // reported where the file is renamed
	}
	for _, f := range fields {
		line, _, _ := bytes.Cut(content[f.start:], []byte("\n"))
		if value := strings.Trim(string(line), `"' `); want[value] {
			return value
		}
	}
	return ""
}
