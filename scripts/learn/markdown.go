package main

import (
	"path/filepath"
	"regexp"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

var (
	link   = regexp.MustCompile(`\[([^\]]*)\]\(([^)\s]+)\)`)
	strong = regexp.MustCompile(`\*\*([^*]+)\*\*`)
	item   = regexp.MustCompile(`^([-*]|\d+\.) `)
)

// markdown is a README or a hint for the screen: one line for each paragraph, which wrap breaks where the screen ends.
// Links lead to where the reader finds the file: dir is the folder of the text.
func (r *runner) markdown(text, dir string) []string {
	var p paragraphs
	for line := range strings.Lines(clean(text)) {
		p.line(strings.TrimRight(line, "\n"))
	}
	p.end()
	for i, line := range p.lines {
		if p.code[i] {
			continue
		}
		line = link.ReplaceAllStringFunc(line, func(match string) string {
			parts := link.FindStringSubmatch(match)
			return parts[1] + r.linkTarget(parts[2], dir)
		})
		line = strong.ReplaceAllStringFunc(line, func(match string) string { return head.Render(strings.Trim(match, "*")) })
		if heading := strings.TrimLeft(line, "#"); heading != line && strings.HasPrefix(heading, " ") {
			line = head.Render(strings.TrimSpace(heading))
		}
		p.lines[i] = line
	}
	return p.lines
}

// linkTarget is a path from the top of the repository, or an address; nothing for a part of the same text.
func (r *runner) linkTarget(target, dir string) string {
	if strings.Contains(target, "://") {
		return " (" + target + ")"
	}
	file, _, _ := strings.Cut(target, "#")
	if file == "" {
		return ""
	}
	return " (" + r.short(filepath.Join(dir, file)) + ")"
}

// paragraphs joins the lines of each paragraph and of each item of a list. Code and tables stay as they are.
type paragraphs struct {
	lines   []string
	code    []bool
	current string
	fenced  bool
}

func (p *paragraphs) line(text string) {
	trimmed := strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(trimmed, "```"):
		p.end()
		p.fenced = !p.fenced
	case p.fenced:
		p.add("    "+text, true)
	case trimmed == "":
		p.end()
		if n := len(p.lines); n > 0 && p.lines[n-1] != "" {
			p.add("", false)
		}
	case strings.HasPrefix(trimmed, "|"), strings.HasPrefix(text, "    ") && p.current == "":
		p.end()
		p.add(text, true)
	case item.MatchString(trimmed), strings.HasPrefix(trimmed, "#"):
		p.end()
		p.current = strings.TrimRight(text, " ")
		if trimmed[0] == '#' {
			p.end()
		}
	case p.current == "":
		p.current = trimmed
	default:
		p.current += " " + trimmed
	}
}

func (p *paragraphs) end() {
	if p.current != "" {
		p.add(p.current, false)
		p.current = ""
	}
}

func (p *paragraphs) add(line string, code bool) {
	p.lines = append(p.lines, line)
	p.code = append(p.code, code)
}

// wrap breaks lines that are wider than the screen. The parts keep the indentation; those of an item stand below its text.
func wrap(lines []string, width int) []string {
	var out []string
	for _, line := range lines {
		plain := ansi.Strip(line)
		indent := plain[:len(plain)-len(strings.TrimLeft(plain, " "))]
		rest := strings.TrimPrefix(line, indent)
		hang := indent + strings.Repeat(" ", len(item.FindString(plain[len(indent):])))
		if ansi.StringWidth(line) <= width || len(hang)+10 > width {
			out = append(out, ansi.Truncate(line, width, "…"))
			continue
		}
		room := width - len(hang)
		for i, part := range strings.Split(lipgloss.Wrap(rest, room, ""), "\n") {
			before := hang
			if i == 0 {
				before = indent
			}
			out = append(out, before+ansi.Truncate(part, room, "…"))
		}
	}
	return out
}
