package bench

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"example.com/workbook/shared/audit"
)

// figures are the results of one measurement.
type figures struct {
	fluxes, pods int
	// created is how long it took to create the Fluxes.
	created time.Duration
	// launched is the time until the operator had created the last Job, and made the time until the Job controller had
	// created the last pod.
	launched, made time.Duration
	// simulated is the time that it took to report all pods ready, and ready the time from the first of them until the
	// last FluxSetup had reported it.
	simulated, ready time.Duration
	// writes are the operator's writes.
	writes []audit.Event
	// events is the number of pod events, and reconciliations the number of reconciliations of each controller.
	events          int
	reconciliations reconciliations
	// peak is the operator's resident memory.
	peak uint64
}

func report(b *testing.B, herd []figures, one figures) {
	all := sum(herd)
	b.ReportMetric(all.made.Seconds()/float64(len(herd)), "s-to-pods")
	b.ReportMetric(one.made.Seconds(), "s-to-pods-large")
	b.ReportMetric(float64(len(all.writes))/float64(all.fluxes), "writes/flux")
	b.ReportMetric(float64(len(one.writes)), "writes-large")
	b.ReportMetric(float64(all.reconciliations["fluxsetup"])/float64(all.events), "passes/pod-event")
	b.ReportMetric(float64(one.reconciliations["fluxsetup"])/float64(one.events), "passes/pod-event-large")
	b.ReportMetric(float64(max(all.peak, one.peak))/1e6, "MB-peak")
	b.ReportMetric(0, "ns/op")

	for i, wave := range herd {
		describe(fmt.Sprintf("%d Fluxes at once, wave %d", wave.fluxes, i+1), wave)
	}
	describe("one large Flux", one)
}

func describe(what string, f figures) {
	fmt.Printf("\n%s: %d pods\n", what, f.pods)
	fmt.Printf("  Fluxes created within:        %8.2f s\n", f.created.Seconds())
	fmt.Printf("  until the last Job was made:  %8.2f s\n", f.launched.Seconds())
	fmt.Printf("  until the last pod was made:  %8.2f s\n", f.made.Seconds())
	fmt.Printf("  all pods made ready within:   %8.2f s\n", f.simulated.Seconds())
	fmt.Printf("  and all told to be ready:     %8.2f s\n", f.ready.Seconds())
	fmt.Printf("  changes of pods:              %8d\n", f.events)
	for _, controller := range slices.Sorted(maps.Keys(f.reconciliations)) {
		fmt.Printf("  passes of %-19s %8.0f, %.3f for each change of a pod\n", controller+":", f.reconciliations[controller], f.reconciliations[controller]/float64(f.events))
	}
	fmt.Printf("  the operator's peak memory:   %8.1f MB\n", float64(f.peak)/1e6)
	fmt.Printf("  the operator's writes:        %8d, %.2f for each Flux:\n", len(f.writes), float64(len(f.writes))/float64(f.fluxes))
	counts := map[string]int{}
	for i := range f.writes {
		counts[audit.Permissions(f.writes[i : i+1])[0]]++
	}
	for _, request := range slices.Sorted(maps.Keys(counts)) {
		fmt.Printf("    %-44s %8.2f\n", request, float64(counts[request])/float64(f.fluxes))
	}
}

// sum adds up the figures of several waves; of the peak it takes the maximum.
func sum(waves []figures) figures {
	all := figures{reconciliations: reconciliations{}}
	for _, wave := range waves {
		all.fluxes += wave.fluxes
		all.made += wave.made
		all.writes = append(all.writes, wave.writes...)
		all.events += wave.events
		for controller, n := range wave.reconciliations {
			all.reconciliations[controller] += n
		}
		all.peak = max(all.peak, wave.peak)
	}
	return all
}

// lastJob is the time of the last response to a creation of a Job.
func lastJob(writes []audit.Event) time.Time {
	var last time.Time
	for i := range writes {
		if e := &writes[i]; e.Verb == "create" && e.ObjectRef.Resource == "jobs" && e.StageTimestamp.After(last) {
			last = e.StageTimestamp.Time
		}
	}
	return last
}
