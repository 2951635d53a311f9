package docstest

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// limits say how many chapters of a run are at work at once, and which come first where there is not time for all.
type limits struct {
	// lanes is how many chapters run side by side.
	lanes int
	// first come before the others: what a change touches.
	first *regexp.Regexp
	// rotate is how many of the others go to the end, so that what one run leaves out is the first of another.
	rotate int
	// until is when none is begun any more; zero is never.
	until time.Time
}

// readLimits reads DOCS_LANES (2, and 1 on kind, whose clusters are large), DOCS_FIRST, a regular expression,
// DOCS_ROTATE, and DOCS_UNTIL, in seconds since 1970.
func readLimits(getenv func(string) string) (limits, error) {
	lanes := 2
	if getenv("DOCS_CLUSTER") == "kind" {
		lanes = 1
	}
	var errs []error
	number := func(name string, otherwise, least int) int {
		text := getenv(name)
		if text == "" {
			return otherwise
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < least {
			errs = append(errs, fmt.Errorf("%s=%s: it is a number, %d or more", name, text, least))
		}
		return n
	}
	l := limits{lanes: number("DOCS_LANES", lanes, 1), rotate: number("DOCS_ROTATE", 0, 0)}
	if until := number("DOCS_UNTIL", 0, 0); until > 0 {
		l.until = time.Unix(int64(until), 0)
	}
	var err error
	if l.first, err = regexp.Compile(cmp.Or(getenv("DOCS_FIRST"), "^$")); err != nil {
		errs = append(errs, fmt.Errorf("DOCS_FIRST: %w", err))
	}
	return l, errors.Join(errs...)
}

// order returns the chapters in the order in which they are begun.
func (l limits) order(chapters []Chapter) []Chapter {
	ordered := slices.Clone(chapters)
	if len(ordered) > 0 {
		n := l.rotate % len(ordered)
		ordered = append(ordered[n:], ordered[:n]...)
	}
	slices.SortStableFunc(ordered, func(a, b Chapter) int {
		return cmp.Compare(l.rank(a), l.rank(b))
	})
	return ordered
}

func (l limits) rank(chapter Chapter) int {
	if l.first.MatchString(chapter.Name) {
		return 0
	}
	return 1
}

// expired reports whether it is too late to begin a chapter.
func (l limits) expired() bool {
	return !l.until.IsZero() && time.Now().After(l.until)
}
