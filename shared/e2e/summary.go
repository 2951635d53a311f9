package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

// summary lists the specs that ran, with the time that each took, and says how many were not run and why, and what running
// them at once saves.
func summary(report ginkgo.Report) string {
	var text strings.Builder
	notRun := map[string]int{}
	var sum, serial time.Duration
	var began, ended time.Time
	specs := report.SpecReports.WithLeafNodeType(types.NodeTypeIt)
	slices.SortFunc(specs, byPlace)
	for _, spec := range specs {
		if spec.NumAttempts == 0 || spec.State == types.SpecStateSkipped {
			// One that the command line leaves out has no message.
			if spec.Failure.Message != "" {
				notRun[spec.Failure.Message]++
			}
			continue
		}
		result := "ok"
		if spec.State != types.SpecStatePassed {
			result = spec.State.String()
		}
		fmt.Fprintf(&text, "%-6s %6.1f s  %s\n", result, spec.RunTime.Seconds(), spec.FullText())
		sum += spec.RunTime
		if spec.IsSerial {
			serial += spec.RunTime
		}
		if began.IsZero() || spec.StartTime.Before(began) {
			began = spec.StartTime
		}
		if spec.EndTime.After(ended) {
			ended = spec.EndTime
		}
	}
	fmt.Fprintf(&text, "==> the specs took %s, one after the other they would have taken %s, the serial ones %s\n",
		ended.Sub(began).Round(time.Second), sum.Round(time.Second), serial.Round(time.Second))
	for _, why := range slices.Sorted(maps.Keys(notRun)) {
		fmt.Fprintf(&text, "==> %d specs not run: %s\n", notRun[why], why)
	}
	return text.String()
}

// byPlace sorts specs by their subject, and then as they stand in the files of the suite.
func byPlace(a, b types.SpecReport) int {
	return cmp.Or(cmp.Compare(subject(a), subject(b)), cmp.Compare(a.FileName(), b.FileName()), cmp.Compare(a.LineNumber(), b.LineNumber()),
		cmp.Compare(a.FullText(), b.FullText()))
}

// subject is the text of the outermost container of a spec.
func subject(spec types.SpecReport) string {
	if len(spec.ContainerHierarchyTexts) == 0 {
		return ""
	}
	return spec.ContainerHierarchyTexts[0]
}
