// Command informer assembles one informer from the parts of client-go, with a work queue and workers, and shows
// what each part does, in order: at the start, and for a change.
//
// The informer is in internal/handmade. Begin with its doc.go, then informer.go and process.go. A
// cache.SharedIndexInformer has the same input, and its store has the same objects at the end. In client-go
// v0.37.2, under tools/cache/, read newInformer, newQueueFIFO, processDeltas and processReplacedAllInfo
// (controller.go), and then HandleDeltas and sharedProcessor (shared_informer.go), which a shared informer adds.
package main

import (
	"context"
	"slices"
	"sync"

	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/lesson"
)

func main() { lesson.Main(program) }

var program = lesson.Lesson{
	Name:  "informer",
	Shows: "An informer assembled from its parts, and what each part does.",
	Run:   run,
}

func run(ctx context.Context, env *lesson.Env) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()

	s := &session{Env: env}
	s.CreateConfigMap(ctx, "apple", "")
	s.Printf("1. One ConfigMap, apple, exists. The informer starts: a list, and the watch that follows it\n")
	assembled, workers := assemble(s)
	shared := sharedInformer(s)
	running.Go(func() { assembled.Run(ctx) })
	running.Go(func() { shared.RunWithContext(ctx) })
	running.Go(func() {
		// The workers begin when the handler has been notified of the whole initial list.
		if cache.WaitFor(ctx, "", assembled.HasSyncedChecker()) {
			workers.Run(ctx)
		}
	})
	s.printUntilDone(ctx)

	s.Printf("2. apple changes: one watch event, one delta, one write to the store, one notification, one key\n")
	s.UpdateConfigMap(ctx, "apple", "red")
	s.printUntilDone(ctx)

	s.Printf("3. A cache.SharedIndexInformer has had the same input\n")
	same := func() bool { return slices.Equal(states(shared.GetStore()), states(assembled.Store())) }
	lesson.Until(ctx, "the stores are the same", same)
	s.Printf("   its store has the same objects, at the same resourceVersions: %t\n", same())
}
