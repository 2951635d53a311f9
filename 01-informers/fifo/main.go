// Package main is the lesson on the queue between a reflector and the store that it fills: which deltas it
// holds, in which order they come out, and what it makes of objects that a new list no longer has. Nothing
// here needs a cluster.
//
// Source, k8s.io/client-go v0.37.2, under tools/cache:
//
//	the_real_fifo.go    RealFIFO: what every informer runs on today
//	delta_fifo.go       DeltaFIFO: what they ran on before, and the types of deltas that both use
//	fifo.go             Queue and QueueWithBatch, the two interfaces
//	controller.go       newQueueFIFO chooses; processLoop pops; processDeltas and processReplacedAllInfo apply
//
// and features/known_features.go for the gates.
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
	Shows:   "The queue of deltas inside an informer: one trace played into DeltaFIFO and RealFIFO, batches, relists, gates.",
	Offline: true,
	Run:     run,
}

func run(ctx context.Context, world *lesson.World) error {
	world.Printf("1. A trace: what a reflector tells its queue while nobody pops. The store already holds %s.\n", shortAll(storeBefore()))
	for i, call := range trace {
		world.Printf("   %2d  %s\n", i+1, call.says)
	}
	if err := sideBySide(world); err != nil {
		return err
	}
	if err := batches(world); err != nil {
		return err
	}
	if err := firstList(world); err != nil {
		return err
	}
	if err := lockedOrNot(world); err != nil {
		return err
	}
	if err := relistInAnInformer(ctx, world); err != nil {
		return err
	}
	tellGates(world)
	return nil
}

// sideBySide plays the trace into all kinds of queue, pops each empty, and prints a line for each pop.
func sideBySide(world *lesson.World) error {
	world.Printf("\n2. What comes out, one line for each Pop. (x) is a DeletedFinalStateUnknown that carries x.\n")
	columns := make([][]string, len(kinds))
	for i, kind := range kinds {
		queue := kind.make(storeBefore())
		if err := play(queue, trace); err != nil {
			return fmt.Errorf("playing the trace into %s: %w", kind.name, err)
		}
		popped, err := popAll(queue)
		if err != nil {
			return fmt.Errorf("emptying %s: %w", kind.name, err)
		}
		columns[i] = popped
	}
	table := tabwriter.NewWriter(world.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "   \t%s\t%s\t%s\n", kinds[0].name, kinds[1].name, kinds[2].name)
	for row := range max(len(columns[0]), len(columns[1]), len(columns[2])) {
		fmt.Fprintf(table, "   %2d\t%s\t%s\t%s\n", row+1, cell(columns[0], row), cell(columns[1], row), cell(columns[2], row))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	world.Printf("   DeltaFIFO collects by key: the order between keys is lost, and of two deletions in a row one is left.\n")
	world.Printf("   RealFIFO keeps every event in the order in which it came, whatever its key.\n")
	world.Printf("   Resync gave the first two nothing: what the store holds was in the queue already.\n")
	return nil
}

func cell(column []string, row int) string {
	if row < len(column) {
		return column[row]
	}
	return "."
}

// batches pops the same trace with PopBatch, as the process loop of an informer does.
func batches(world *lesson.World) error {
	world.Printf("\n3. PopBatch on RealFIFO: as many deltas as there are different keys in a row, and never two of one key.\n")
	queue := newAtomicFIFO()
	if err := play(queue, trace); err != nil {
		return fmt.Errorf("playing the trace: %w", err)
	}
	popped, err := popBatches(queue)
	if err != nil {
		return fmt.Errorf("popping batches: %w", err)
	}
	for i, batch := range popped {
		world.Printf("   %2d  %s\n", i+1, strings.Join(batch, ", "))
	}
	return nil
}

// firstList shows when a queue says that it has synced.
func firstList(world *lesson.World) error {
	world.Printf("\n4. HasSynced: not when the first list is in the queue, but when all of it was popped.\n")
	for _, kind := range kinds {
		pops, err := popsUntilSynced(kind.make(nil))
		if err != nil {
			return fmt.Errorf("counting the pops of %s: %w", kind.name, err)
		}
		world.Printf("   %-24s  a first list of 3 objects, synced after this many calls of Pop: %d\n", kind.name, pops)
	}
	return nil
}

// lockedOrNot shows who waits for a slow handler.
func lockedOrNot(world *lesson.World) error {
	world.Printf("\n5. Can the reflector add to the queue while a delta is being processed?\n")
	for _, unlock := range []bool{false, true} {
		queue := cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{AtomicEvents: true, UnlockWhileProcessing: unlock})
		added, err := canAddWhileProcessing(queue, 100*time.Millisecond)
		if err != nil {
			return fmt.Errorf("adding while processing: %w", err)
		}
		world.Printf("   UnlockWhileProcessing=%-5t  %s\n", unlock, map[bool]string{true: "yes", false: "no, it waits for the lock"}[added])
	}
	return nil
}

// tellGates prints what this process was told about the queue.
func tellGates(world *lesson.World) {
	world.Printf("\n7. The gates of this process. KUBE_FEATURE_AtomicFIFO=false go run ./fifo turns one off.\n")
	for _, gate := range gates {
		world.Printf("   %-28s %-5t  %s\n", gate.feature, features.FeatureGates().Enabled(gate.feature), gate.changes)
	}
}
