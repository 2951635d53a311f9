package docstest

import (
	"fmt"
	"regexp"
	"strings"
)

// more is what a chapter writes where it leaves something out: part of a line, or, alone on a line, any lines.
const more = "…"

// varies is what is different each time, wherever it stands: durations and times, and what Kubernetes makes up.
var varies = regexp.MustCompile(strings.Join([]string{
	`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`, // a time
	`\b\d\d:\d\d:\d\d(\.\d+)?\b`,
	`\b(\d+(\.\d+)?(ns|µs|ms|s|m|h|d))+\b`,                           // a duration, as an age
	`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`, // a UID
}, "|"))

// Difference is the first one between what a chapter shows and what was printed.
type Difference struct {
	// Line is the one of what is shown, from 1.
	Line int
	// Want and Got are lines; none is one that is not there.
	Want, Got string
}

const none = "(no more lines)"

func (d *Difference) Error() string {
	return fmt.Sprintf("the chapter shows\n\t%s\nand this was printed:\n\t%s", d.Want, d.Got)
}

// Match reports whether an output is the one that a chapter shows. White space is compared as one blank, and what varies
// from run to run is not compared. The error is a Difference.
func Match(shown, output string) error {
	want, got := lines(shown), lines(output)
	at := 0
	for i, wanted := range want {
		if wanted.text == more {
			if i == len(want)-1 {
				return nil
			}
			begin, next := at, expression(want[i+1].text)
			for at < len(got) && !next.MatchString(got[at].text) {
				at++
			}
			if at == len(got) {
				return &Difference{want[i+1].number, want[i+1].text, fmt.Sprintf("(none of the %d lines here is that)", at-begin)}
			}
			continue
		}
		if at == len(got) {
			return &Difference{wanted.number, wanted.text, none}
		}
		if !expression(wanted.text).MatchString(got[at].text) {
			return &Difference{wanted.number, wanted.text, got[at].text}
		}
		at++
	}
	if at < len(got) {
		last := 1
		if len(want) > 0 {
			last = want[len(want)-1].number
		}
		return &Difference{last, none, got[at].text}
	}
	return nil
}

// line is one with its number in a text, from 1.
type line struct {
	number int
	text   string
}

// lines are those of a text that are not empty, with single blanks.
func lines(text string) []line {
	var found []line
	for i, one := range strings.Split(text, "\n") {
		if words := strings.Fields(one); len(words) > 0 {
			found = append(found, line{i + 1, strings.Join(words, " ")})
		}
	}
	return found
}

// expression matches the lines that a line of a chapter stands for.
func expression(shown string) *regexp.Regexp {
	var pattern strings.Builder
	for i, part := range strings.Split(shown, more) {
		if i > 0 {
			pattern.WriteString(".*")
		}
		from := 0
		for _, at := range varies.FindAllStringIndex(part, -1) {
			pattern.WriteString(regexp.QuoteMeta(part[from:at[0]]))
			pattern.WriteString("(" + varies.String() + ")")
			from = at[1]
		}
		pattern.WriteString(regexp.QuoteMeta(part[from:]))
	}
	return regexp.MustCompile("^" + pattern.String() + "$")
}
