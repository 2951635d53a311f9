package cow

import (
	"strings"

	"github.com/rivo/uniseg"
)

// tabStop is the distance between two tab stops, in columns.
const tabStop = 8

// wrap breaks text into lines of at most width columns. Newlines in the text
// stay line breaks. A line breaks between words; a word that is wider than a
// line is cut, but never inside a character that a reader sees as one.
func wrap(text string, width int) []string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, wrapLine(expandTabs(line), width)...)
	}
	return lines
}

// wrapLine breaks one line. Spaces inside a line and at its start are kept;
// those where it breaks, and those at its end, are dropped.
func wrapLine(line string, width int) []string {
	var lines []string
	current := ""
	for line != "" {
		word := strings.TrimLeft(line, " ")
		gap := line[:len(line)-len(word)]
		if end := strings.IndexByte(word, ' '); end >= 0 {
			word = word[:end]
		}
		line = line[len(gap)+len(word):]
		if word == "" {
			break
		}
		if uniseg.StringWidth(current+gap+word) <= width {
			current += gap + word
			continue
		}
		if current != "" {
			lines = append(lines, current)
		}
		current = word
		for head, tail := cut(current, width); tail != ""; head, tail = cut(current, width) {
			lines = append(lines, head)
			current = tail
		}
	}
	return append(lines, current)
}

// cut splits word after as many whole characters as fit into width columns,
// and at least one.
func cut(word string, width int) (head, tail string) {
	used := 0
	graphemes := uniseg.NewGraphemes(word)
	for graphemes.Next() {
		start, _ := graphemes.Positions()
		if start > 0 && used+graphemes.Width() > width {
			return word[:start], word[start:]
		}
		used += graphemes.Width()
	}
	return word, ""
}

// expandTabs replaces each tab by the spaces up to the next tab stop: a tab
// inside a balloon would push its right-hand border out of line.
func expandTabs(line string) string {
	var expanded strings.Builder
	parts := strings.Split(line, "\t")
	for _, part := range parts[:len(parts)-1] {
		expanded.WriteString(part)
		expanded.WriteString(strings.Repeat(" ", tabStop-uniseg.StringWidth(part)%tabStop))
	}
	expanded.WriteString(parts[len(parts)-1])
	return expanded.String()
}
