package bench

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"example.com/workbook/shared/audit"
	"example.com/workbook/shared/bench"
)

// most is the maximum size of a Goop in bytes, whatever the number of its nodes.
const most = 64 << 10

// turns is how long the operator may take to report the end, whatever the number of nodes: the record and the status are
// written in turns of a second, and events of pods are collected before.
const turns = 4 * time.Second

// slack is the factor by which a figure may grow faster than the number of nodes.
const slack = 1.2

// figures are the figures for one number of nodes.
type figures struct {
	nodes               int
	everywhere, counted goopFigures
	plain               plainFigures
}

// goopFigures are the figures of one Goop.
type goopFigures struct {
	// took is the time from the creation of the Goop to its end; made until the DaemonSet controller had created the last
	// pod; ended until the last kubelet had reported the end of the work.
	took, made, ended time.Duration
	// events is the number of changes of pods.
	events, finished int
	reconciliations  float64
	// writes are the writes of the operator, and peak is its resident memory.
	writes []audit.Event
	peak   uint64
	cpu    bench.CPU

	goopBytes, daemonSetBytes, recordBytes, shards int
}

// plainFigures are the figures of the same work without an operator. finished is how many workers had finished when the
// loop reported the end: a node that is not ready at that moment is not counted there.
type plainFigures struct {
	took, made, ended time.Duration
	cpu               bench.CPU
	finished          int
}

func describePlain(f plainFigures) {
	fmt.Printf("  a plain DaemonSet and a shell loop\n")
	fmt.Printf("    until the loop said it was over: %8.2f s, with %d workers finished\n", f.took.Seconds(), f.finished)
	fmt.Printf("    until the last pod was made:     %8.2f s\n", f.made.Seconds())
	fmt.Printf("    until the last work was over:    %8.2f s\n", f.ended.Seconds())
	fmt.Printf("    CPU time until it was over:      %s\n", f.cpu)
}

func describeGoop(what string, nodes int, f goopFigures) {
	fmt.Printf("  %s\n", what)
	fmt.Printf("    until it was over:               %8.2f s\n", f.took.Seconds())
	fmt.Printf("    until the last pod was made:     %8.2f s\n", f.made.Seconds())
	fmt.Printf("    until the last work was over:    %8.2f s\n", f.ended.Seconds())
	fmt.Printf("    from then until it was reported:     %8.2f s\n", (f.took - f.ended).Seconds())
	fmt.Printf("    changes of pods:                 %8d\n", f.events)
	fmt.Printf("    reconciliations:                 %8.0f, %.4f for each change of a pod\n", f.reconciliations, f.reconciliations/float64(f.events))
	fmt.Printf("    CPU time until it was over:      %s\n", f.cpu)
	fmt.Printf("    the operator's peak memory:      %8.1f MB\n", float64(f.peak)/1e6)
	fmt.Printf("    size of the Goop:                %8d bytes\n", f.goopBytes)
	fmt.Printf("    size of its DaemonSet:           %8d bytes\n", f.daemonSetBytes)
	fmt.Printf("    size of its record:              %8d bytes in %d ConfigMaps\n", f.recordBytes, f.shards)
	fmt.Printf("    the operator's writes:           %8d, %.4f for each node:\n", len(f.writes), float64(len(f.writes))/float64(nodes))
	counts := map[string]int{}
	for i := range f.writes {
		counts[audit.Permissions(f.writes[i : i+1])[0]]++
	}
	for _, request := range slices.Sorted(maps.Keys(counts)) {
		fmt.Printf("      %-40s %d\n", request, counts[request])
	}
}

func report(b *testing.B, all []figures) {
	last := all[len(all)-1]
	b.ReportMetric(last.everywhere.took.Seconds(), "s-to-complete")
	b.ReportMetric(last.plain.took.Seconds(), "s-plain")
	b.ReportMetric(float64(len(last.everywhere.writes))/float64(last.nodes), "writes/node")
	b.ReportMetric(last.everywhere.reconciliations/float64(last.everywhere.events), "reconciliations/pod-event")
	b.ReportMetric(float64(max(last.everywhere.peak, last.counted.peak))/1e6, "MB-peak")
	b.ReportMetric(float64(last.counted.goopBytes), "bytes-goop")
	b.ReportMetric(0, "ns/op")
}

// check compares the figures with their limits.
func check(b *testing.B, all []figures) {
	for i, f := range all {
		for what, one := range map[string]goopFigures{"without jobCount": f.everywhere, "with jobCount": f.counted} {
			if one.goopBytes >= most {
				b.Errorf("%d nodes, %s: the Goop has %d bytes", f.nodes, what, one.goopBytes)
			}
			if reported := one.took - one.ended; reported > max(one.made, turns) {
				b.Errorf("%d nodes, %s: the operator took %s to report the end, and the DaemonSet controller %s to create the pods", f.nodes, what, reported, one.made)
			}
		}
		if i == 0 {
			continue
		}
		before := all[i-1]
		faster(b, before, f, "writes", len(before.everywhere.writes), len(f.everywhere.writes))
		faster(b, before, f, "bytes of memory", int(before.everywhere.peak), int(f.everywhere.peak))
		faster(b, before, f, "bytes of the Goop", before.counted.goopBytes, f.counted.goopBytes)
		faster(b, before, f, "bytes of the DaemonSet", before.counted.daemonSetBytes, f.counted.daemonSetBytes)
		faster(b, before, f, "bytes of the record", before.counted.recordBytes, f.counted.recordBytes)
	}
}

// faster fails if a figure has grown faster than the number of nodes.
func faster(b *testing.B, before, after figures, what string, was, is int) {
	if float64(is)/float64(was) > slack*float64(after.nodes)/float64(before.nodes) {
		b.Errorf("from %d to %d nodes the %s grew from %d to %d", before.nodes, after.nodes, what, was, is)
	}
}
