// Informer puts one informer together from client-go's parts, with a work queue and workers behind it, and shows
// what each part does, in order: at the start, for a change, for changes that come faster than the work,
// for work that fails, and when the watch was lost.
//
// The informer is in internal/handmade; begin with its doc.go, then informer.go and process.go. The same story
// is told to a cache.SharedIndexInformer, which ends with the same store. In client-go v0.37.2, under
// tools/cache/, read newInformer, newQueueFIFO, processDeltas and processReplacedAllInfo (controller.go), and
// then HandleDeltas and sharedProcessor (shared_informer.go), which is what a shared informer has on top.
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
	Shows: "Informer puts one informer together from its parts, and shows what each part does.",
	Run:   run,
}

func run(ctx context.Context, world *lesson.World) error {
	ctx, end := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer end()

	s := newStory(world)
	if err := s.create(ctx, "apple"); err != nil {
		return err
	}
	world.Printf("1. One ConfigMap, apple, is there. The informer starts: a list, and the watch that follows it\n")
	byHand, shared := assemble(s), sharedInformer(s)
	running.Go(func() { byHand.run(ctx) })
	running.Go(func() { shared.RunWithContext(ctx) })
	if err := s.until(ctx, "done apple"); err != nil {
		return err
	}
	s.print()

	for _, chapter := range []func(context.Context, *story, *informer) error{
		oneChange, manyChanges, failure, lostWatch, lateHandler,
	} {
		if err := chapter(ctx, s, byHand); err != nil {
			return err
		}
	}

	world.Printf("7. A cache.SharedIndexInformer was there all the time\n")
	if err := s.waitFor(ctx, func() bool {
		return slices.Equal(versions(shared.GetStore()), versions(byHand.Store()))
	}); err != nil {
		return err
	}
	world.Printf("   its store:    %s\n   made by hand: %s\n   the same versions: %t\n",
		strings.Join(names(shared.GetStore()), ", "), strings.Join(names(byHand.Store()), ", "),
		slices.Equal(versions(shared.GetStore()), versions(byHand.Store())))
	return nil
}

func oneChange(ctx context.Context, s *story, _ *informer) error {
	s.world.Printf("2. apple changes: one watch event, one delta, one change in the store, one call, one key\n")
	if err := s.change(ctx, "apple"); err != nil {
		return err
	}
	if err := s.until(ctx, "done apple"); err != nil {
		return err
	}
	s.print()
	return nil
}

func manyChanges(ctx context.Context, s *story, informer *informer) error {
	s.world.Printf("3. apple changes four times, and the worker has it in hand since the first: one more piece of work for three changes\n")
	release := informer.work.hold()
	for _, then := range []string{"working started apple", "waiting dirty apple", "waiting merged apple", "waiting merged apple"} {
		s.mark()
		if err := s.change(ctx, "apple"); err != nil {
			return err
		}
		if err := s.until(ctx, then); err != nil {
			return err
		}
	}
	s.mark()
	release()
	if err := s.until(ctx, "done apple", "done apple"); err != nil {
		return err
	}
	s.printOnly(handmade.StageHandler, handmade.StageWaiting, handmade.StageWorking, handmade.StageDone)
	return nil
}

func failure(ctx context.Context, s *story, informer *informer) error {
	s.world.Printf("4. pear is made, and the work on it fails once: the key is kept back, and comes again\n")
	informer.work.failOnce()
	if err := s.create(ctx, "pear"); err != nil {
		return err
	}
	if err := s.until(ctx, "done pear"); err != nil {
		return err
	}
	s.print()
	return nil
}

func lostWatch(ctx context.Context, s *story, _ *informer) error {
	s.world.Printf("5. The line is cut, pear is deleted meanwhile, and the watch cannot go on where it was (410): a relist\n")
	for _, line := range s.lines {
		line.Cut()
	}
	if err := s.remove(ctx, "pear"); err != nil {
		return err
	}
	for _, line := range s.lines {
		line.Mend()
	}
	if err := s.until(ctx, "done pear", "done apple"); err != nil {
		return err
	}
	s.printBy("", "pear", "apple")
	return nil
}

func lateHandler(_ context.Context, s *story, informer *informer) error {
	s.world.Printf("6. A second handler is added late: it is told of what the store holds\n")
	informer.AddHandler(cache.TypedResourceEventHandlerFuncs[object]{AddFunc: func(added object) {
		s.world.Printf("   add %s\n", added.GetName())
	}})
	s.mark()
	return nil
}
