package check

import (
	"fmt"
	"slices"
)

// keptLines is how many lines are kept of the begin of a timeline, and as many of its end.
const keptLines = 100

// timeline leaves out what is in the middle: code that does the same for ever writes more lines than a reader reads.
type timeline struct {
	first, last []string
	// left is how many lines are left out, and last a ring that begins at left.
	left int
}

func (t *timeline) add(line string) {
	switch {
	case len(t.first) < keptLines:
		t.first = append(t.first, line)
	case len(t.last) < keptLines:
		t.last = append(t.last, line)
	default:
		t.last[t.left%keptLines] = line
		t.left++
	}
}

func (t *timeline) lines() []string {
	if t.left == 0 {
		return slices.Concat(t.first, t.last)
	}
	oldest := t.left % keptLines
	return slices.Concat(t.first, []string{fmt.Sprintf("… %d lines …", t.left)}, t.last[oldest:], t.last[:oldest])
}
