// Command informer assembles one informer from the parts of client-go, with a work queue and workers, and shows
// what each part does, in order: at the start, for a change, for changes that arrive faster than the worker
// processes them, after an error, and after an interrupted watch.
//
// The informer is in internal/handmade. Begin with its doc.go, then informer.go and process.go. A
// cache.SharedIndexInformer has the same input, and its store has the same objects at the end. In client-go
// v0.37.2, under tools/cache/, read newInformer, newQueueFIFO, processDeltas and processReplacedAllInfo
// (controller.go), and then HandleDeltas and sharedProcessor (shared_informer.go), which a shared informer adds.
package main

import (
	"context"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/handmade"
	"example.com/workbook/01-informers/internal/lesson"
)

func main() { lesson.Main(program) }

var program = lesson.Lesson{
	Name:  "informer",
	Shows: "An informer assembled from its parts, and what each part does.",
	Run:   run,
}

func run(ctx context.Context, env *lesson.Env) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()

	s := &session{Env: env}
	if err := s.create(ctx, "apple"); err != nil {
		return err
	}
	s.Printf("1. One ConfigMap, apple, exists. The informer starts: a list, and the watch that follows it\n")
	assembled, err := assemble(s)
	if err != nil {
		return err
	}
	shared, err := sharedInformer(s)
	if err != nil {
		return err
	}
	running.Go(func() { assembled.run(ctx) })
	running.Go(func() { shared.RunWithContext(ctx) })
	if err := s.until(ctx, "done apple"); err != nil {
		return err
	}
	s.print()

	for _, step := range []func(context.Context, *session, *informer) error{
		oneChange, manyChanges, failure, interruption, lateHandler,
	} {
		if err := step(ctx, s, assembled); err != nil {
			return err
		}
	}

	s.Printf("7. A cache.SharedIndexInformer has had the same input\n")
	same := func() bool { return slices.Equal(states(shared.GetStore()), states(assembled.Store())) }
	if err := lesson.Until(ctx, "the stores are the same", same); err != nil {
		return err
	}
	s.Printf("   its store:    %s\n   made by hand: %s\n   the same resourceVersions: %t\n",
		strings.Join(names(shared.GetStore()), ", "), strings.Join(names(assembled.Store()), ", "), same())
	return nil
}

func oneChange(ctx context.Context, s *session, _ *informer) error {
	s.Printf("2. apple changes: one watch event, one delta, one write to the store, one notification, one key\n")
	if err := s.update(ctx, "apple"); err != nil {
		return err
	}
	if err := s.until(ctx, "done apple"); err != nil {
		return err
	}
	s.print()
	return nil
}

func manyChanges(ctx context.Context, s *session, informer *informer) error {
	s.Printf("3. apple changes four times, and the worker is busy since the first: it runs once more for three changes\n")
	unblock := informer.task.block()
	for _, then := range []string{"working started apple", "waiting dirty apple", "waiting merged apple", "waiting merged apple"} {
		s.mark()
		if err := s.update(ctx, "apple"); err != nil {
			return err
		}
		if err := s.until(ctx, then); err != nil {
			return err
		}
	}
	s.mark()
	unblock()
	if err := s.until(ctx, "done apple", "done apple"); err != nil {
		return err
	}
	s.printOnly(handmade.StageHandler, handmade.StageWaiting, handmade.StageWorking, handmade.StageDone)
	return nil
}

func failure(ctx context.Context, s *session, informer *informer) error {
	s.Printf("4. pear is created, and the worker fails once: the key is added again after a backoff\n")
	informer.task.failOnce()
	if err := s.create(ctx, "pear"); err != nil {
		return err
	}
	if err := s.until(ctx, "done pear"); err != nil {
		return err
	}
	s.print()
	return nil
}

func interruption(ctx context.Context, s *session, _ *informer) error {
	s.Printf("5. The watch is interrupted, pear is deleted, and the watch cannot resume (410): a relist\n")
	if err := s.interrupt(ctx, func() error { return s.DeleteConfigMap(ctx, "pear") }); err != nil {
		return err
	}
	if err := s.until(ctx, "done pear", "done apple"); err != nil {
		return err
	}
	s.printBy("", "pear", "apple")
	return nil
}

func lateHandler(_ context.Context, s *session, informer *informer) error {
	s.Printf("6. A second handler is added later: it is notified of the objects in the store\n")
	informer.AddHandler(cache.TypedResourceEventHandlerFuncs[object]{AddFunc: func(added object) {
		s.Printf("   add %s\n", added.GetName())
	}})
	s.mark()
	return nil
}
