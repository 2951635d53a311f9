package docstest

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// result is what became of a chapter.
type result struct {
	chapter string
	took    time.Duration // its commands, without the copy of the repository before and the end of the cluster after
	run     int           // blocks of commands
	leftOut int           // blocks that need what is not here
	outcome string
}

// summary is a table of results, one line for each chapter, in the order of the book.
func summary(results []result) string {
	slices.SortFunc(results, func(a, b result) int { return strings.Compare(a.chapter, b.chapter) })
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "chapter\tseconds\tblocks run\tleft out\t")
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%.1f\t%d\t%d\t%s\n", r.chapter, r.took.Seconds(), r.run, r.leftOut, r.outcome)
	}
	_ = table.Flush() // to a string
	return out.String()
}
