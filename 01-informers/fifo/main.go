// Package main is the lesson on the queue between a reflector and the store of an informer: which deltas it has, in which
// order they are popped, and how it reports objects that a new list no longer has. It needs no cluster.
//
// Source, k8s.io/client-go v0.37.2, under tools/cache:
//
//	the_real_fifo.go    RealFIFO: the queue of every informer today
//	delta_fifo.go       DeltaFIFO: its predecessor, and the types of deltas that both use
//	fifo.go             Queue and QueueWithBatch, the two interfaces
//	controller.go       newQueueFIFO chooses; processLoop pops; processDeltas and processReplacedAllInfo apply
//
// and features/known_features.go for the feature gates.
package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/client-go/features"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/lesson"
)

func main() { lesson.Main(program) }

var program = lesson.Lesson{
	Name:    "fifo",
	Shows:   "The queue of deltas in an informer: one trace in DeltaFIFO and RealFIFO, batches, relists, feature gates.",
	Offline: true,
	Run: func(ctx context.Context, env *lesson.Env) {
		s := steps{env}
		s.compare()
		s.batches()
		s.locking()
		s.relist(ctx)
		s.gates()
	},
}

// steps print to Out.
type steps struct{ *lesson.Env }

// compare makes the calls of the trace on each kind of queue, and prints the result of each Pop.
func (s steps) compare() {
	s.Printf("1. A trace: the calls of a reflector before the first Pop. The store already has %s.\n", shortAll(storeBefore()))
	for i, call := range trace {
		s.Printf("   %2d  %s\n", i+1, call.text)
	}
	s.Printf("\n2. The deltas, one line for each Pop. (x) is a DeletedFinalStateUnknown with the object x.\n")
	columns := make([][]string, len(kinds))
	for i, kind := range kinds {
		queue := kind.make(storeBefore())
		apply(queue, trace)
		columns[i] = popAll(queue)
	}
	table := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "   \t%s\t%s\t%s\n", kinds[0].name, kinds[1].name, kinds[2].name)
	for row := range max(len(columns[0]), len(columns[1]), len(columns[2])) {
		fmt.Fprintf(table, "   %2d\t%s\t%s\t%s\n", row+1, cell(columns[0], row), cell(columns[1], row), cell(columns[2], row))
	}
	lesson.Check(table.Flush())
	s.Printf("   DeltaFIFO groups by key: the order between keys is lost, and of two deletions in a row it keeps one.\n")
	s.Printf("   RealFIFO keeps every event in the order of arrival.\n")
	s.Printf("   Resync added nothing to the first two: they already had a delta for each object of the store.\n")
}

func cell(column []string, row int) string {
	if row < len(column) {
		return column[row]
	}
	return "."
}

// batches makes the same calls and pops with PopBatch, as an informer does.
func (s steps) batches() {
	s.Printf("\n3. PopBatch on RealFIFO: the next deltas, up to a key that is already in the batch.\n")
	queue := newAtomicFIFO()
	apply(queue, trace)
	for i, batch := range popBatches(queue) {
		s.Printf("   %2d  %s\n", i+1, strings.Join(batch, ", "))
	}
}

// locking shows whether the reflector waits for a slow handler.
func (s steps) locking() {
	s.Printf("\n4. Can the reflector add to the queue while a delta is being processed?\n")
	for _, unlock := range []bool{false, true} {
		queue := cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{AtomicEvents: true, UnlockWhileProcessing: unlock})
		added := canAddWhileProcessing(queue, 100*time.Millisecond)
		s.Printf("   UnlockWhileProcessing=%-5t  %s\n", unlock, map[bool]string{true: "yes", false: "no, it waits for the lock"}[added])
	}
}

func (s steps) relist(ctx context.Context) {
	s.Printf("\n5. A relist in an informer: the notifications of its handler. The server is simulated.\n")
	for _, line := range relist(ctx) {
		s.Printf("   %s\n", line)
	}
}

func (s steps) gates() {
	s.Printf("\n6. The feature gates of this process. KUBE_FEATURE_AtomicFIFO=false go run ./fifo disables one.\n")
	for _, gate := range gates {
		s.Printf("   %-28s %-5t  %s\n", gate.feature, features.FeatureGates().Enabled(gate.feature), gate.effect)
	}
}
