package main

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// keepRule names what looks like the stage's own and belongs to another project: a stage lists its rules in
// hack/starter.yaml.
type keepRule struct {
	// Match is a regular expression for the text to keep.
	Match string `json:"match"`
	// Files, if set, limits the rule to files that match one of these patterns (as in path.Match; one
	// without a slash is for the file's own name, one that ends in a slash for all below a folder).
	Files []string `json:"files,omitempty"`
	// In, if set, limits the rule to "string" (literals of Go), "comment" (of Go), "identifier" (of
	// Go), or to a field of a manifest and all below it, as in "data" or "spec.command".
	In []string `json:"in,omitempty"`

	pattern *regexp.Regexp
}

// place is where a piece of text stands: the file, and what it is there.
type place struct {
	file string // slash-separated, as it is called in the stage
	part string // "string", "comment", "identifier", or the path of a field; empty: not known
}

// links to other sites are not names, whatever their words.
var links = keepRule{pattern: regexp.MustCompile(`https?://[\w.-]+\.(com|org|io|dev|net|edu|gov)\b[^\s"'<>)\x60]*`)}

func compile(rules []keepRule) ([]keepRule, error) {
	out := []keepRule{links}
	for _, rule := range rules {
		pattern, err := regexp.Compile(rule.Match)
		if err != nil {
			return nil, fmt.Errorf("reading the rule to keep %q: %w", rule.Match, err)
		}
		if rule.Match == "" || pattern.MatchString("") {
			return nil, fmt.Errorf("reading the rule to keep %q: it matches nothing at all", rule.Match)
		}
		rule.pattern = pattern
		out = append(out, rule)
	}
	return out, nil
}

func (k keepRule) applies(at place) bool {
	return (len(k.Files) == 0 || anyOf(k.Files, at.file, matchesFile)) &&
		(len(k.In) == 0 || anyOf(k.In, at.part, matchesPart))
}

func anyOf(patterns []string, s string, matches func(pattern, s string) bool) bool {
	for _, pattern := range patterns {
		if matches(pattern, s) {
			return true
		}
	}
	return false
}

func matchesFile(pattern, file string) bool {
	if strings.HasSuffix(pattern, "/") {
		return strings.HasPrefix(file, pattern)
	}
	if !strings.Contains(pattern, "/") {
		file = path.Base(file)
	}
	matched, _ := path.Match(pattern, file)
	return matched
}

func matchesPart(pattern, part string) bool {
	return part == pattern || strings.HasPrefix(part, pattern+".") || strings.HasSuffix(part, "."+pattern) ||
		strings.Contains(part, "."+pattern+".")
}

// spans are the parts of a text to keep: pairs of start and end.
type spans [][]int

// from returns the end of the span that holds s[i], or 0.
func (s spans) from(i int) int {
	end := 0
	for _, span := range s {
		if span[0] <= i && i < span[1] {
			end = max(end, span[1])
		}
	}
	return end
}

func (r *renamer) kept(at place, s string) spans {
	var out spans
	for _, rule := range r.keep {
		if rule.applies(at) {
			out = append(out, rule.pattern.FindAllStringIndex(s, -1)...)
		}
	}
	return out
}
