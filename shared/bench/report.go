package bench

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/workbook/shared/audit"
)

// Row is one line of a table: what the figures are, and one figure for each column.
type Row struct {
	Name    string
	Figures []string
}

// Table prints figures in columns.
func Table(out io.Writer, title string, columns []string, rows []Row) {
	first := len(title)
	for _, row := range rows {
		first = max(first, len(row.Name)+2)
	}
	fmt.Fprintf(out, "\n%-*s", first, title)
	for _, column := range columns {
		fmt.Fprintf(out, "  %*s", width(column), column)
	}
	fmt.Fprintln(out)
	for _, row := range rows {
		fmt.Fprintf(out, "  %-*s", first-2, row.Name)
		for i, figure := range row.Figures {
			fmt.Fprintf(out, "  %*s", width(columns[i]), figure)
		}
		fmt.Fprintln(out)
	}
}

func width(column string) int { return max(10, len(column)) }

// Figures makes a row of one figure of each of several costs.
func Figures[C any](name, format string, all []C, figure func(C) float64) Row {
	row := Row{Name: name}
	for _, one := range all {
		row.Figures = append(row.Figures, fmt.Sprintf(format, figure(one)))
	}
	return row
}

// Requests makes a row for each sort of request, with how many of them each cost has for one of n objects.
func Requests(all []Cost, n int) []Row {
	sorts := map[string][]int{}
	for i, cost := range all {
		for j := range cost.Requests {
			name := sortOf(&cost.Requests[j])
			if sorts[name] == nil {
				sorts[name] = make([]int, len(all))
			}
			sorts[name][i]++
		}
	}
	var rows []Row
	for _, name := range slices.Sorted(maps.Keys(sorts)) {
		rows = append(rows, Figures("  "+name, "%.2f", sorts[name], func(count int) float64 { return float64(count) / float64(n) }))
	}
	return rows
}

// sortOf is what a request does, and how it failed: "patch lolcows/status, 409".
func sortOf(e *audit.Event) string {
	what := strings.TrimSuffix(e.Verb+" "+e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")
	if e.ResponseStatus != nil && e.ResponseStatus.Code >= 300 {
		what += fmt.Sprintf(", %d", e.ResponseStatus.Code)
	}
	return what
}

// Milliseconds is a time for each of n objects.
func Milliseconds(d time.Duration, n int) float64 {
	return float64(d) / float64(time.Millisecond) / float64(n)
}

// Megabytes is a size.
func Megabytes(bytes uint64) float64 { return float64(bytes) / 1e6 }

// Median is the one in the middle of some costs, by a figure.
func Median[C any](all []C, figure func(C) float64) C {
	sorted := slices.SortedFunc(slices.Values(all), func(x, y C) int {
		switch a, b := figure(x), figure(y); {
		case a < b:
			return -1
		case a > b:
			return 1
		}
		return 0
	})
	return sorted[len(sorted)/2]
}
