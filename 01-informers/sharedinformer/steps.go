package main

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/lesson"
)

// resyncPeriod is the shortest that is possible: minimumResyncPeriod in shared_informer.go.
const resyncPeriod = time.Second

func (s *session) shareOneWatch(ctx context.Context) {
	s.Printf("1. One watch for several handlers\n")
	s.factory = informers.NewSharedInformerFactoryWithOptions(s.client, resyncPeriod,
		informers.WithNamespace(s.Namespace), informers.WithTweakListOptions(selectOwn))
	// The factory returns the same informer twice: it has one per Go type.
	s.informer = s.factory.Core().V1().ConfigMaps().TypedInformer()
	again := s.factory.Core().V1().ConfigMaps().TypedInformer()

	gate := make(chan struct{})
	s.open = sync.OnceFunc(func() { close(gate) })
	s.quick, s.slow, s.resynced = &recorder{}, &recorder{gate: gate}, &recorder{}
	never := cache.HandlerOptions{ResyncPeriod: new(time.Duration(0))}
	s.registrations = []cache.ResourceEventHandlerRegistration{
		lesson.Must(again.AddTypedEventHandler(s.quick, never)),
		lesson.Must(again.AddTypedEventHandler(s.slow, never)),
		lesson.Must(again.AddTypedEventHandler(s.resynced)), // the informer's own period
	}
	s.Printf("   before the start: %d requests\n", len(s.requests.All()))
	s.factory.StartWithContext(ctx)
	lesson.Check(s.factory.WaitForCacheSyncWithContext(ctx).AsError())
	s.Printf("   %d handlers, %d objects: %d request, a watch that begins with the list\n",
		len(s.registrations), len(s.informer.GetStore().List()), len(s.requests.All()))
}

func (s *session) awaitSync(ctx context.Context) {
	s.Printf("2. The cache has synced; that does not mean that the handlers have\n")
	quick, slow := s.registrations[0].HasSyncedChecker(), s.registrations[1].HasSyncedChecker()
	waitFor(ctx, s.informer.HasSyncedChecker(), quick)
	s.Printf("   cache: %t, quick handler: %t, slow handler: %t (notified of %d of 3 objects)\n",
		cache.IsDone(s.informer.HasSyncedChecker()), cache.IsDone(quick), cache.IsDone(slow), s.slow.count(""))
}

func waitFor(ctx context.Context, checkers ...cache.DoneChecker) {
	if !cache.WaitFor(ctx, "", checkers...) {
		lesson.Check(context.Cause(ctx))
	}
}

func (s *session) keepOrder(ctx context.Context) {
	s.Printf("3. Each handler has a buffer of its own\n")
	for _, value := range []string{"2", "3", "4"} {
		s.UpdateConfigMap(ctx, "a", value)
	}
	lesson.Until(ctx, "the quick handler has 4 notifications of a", func() bool { return len(s.quick.of("a")) == 4 })
	s.Printf("   the slow handler is still in its first call; the quick one was notified of a: %s\n", strings.Join(s.quick.of("a"), ", "))
	s.open()
	waitFor(ctx, s.registrations[1].HasSyncedChecker())
	lesson.Until(ctx, "the slow handler has 4 notifications of a", func() bool { return len(s.slow.of("a")) == 4 })
	s.Printf("   the slow one was notified of a, later:  %s\n", strings.Join(s.slow.of("a"), ", "))
	s.Printf("   both got the same object in memory: %t. So neither may change it\n", s.quick.last("a") == s.slow.last("a"))
}

func (s *session) resync(ctx context.Context) {
	s.Printf("4. A resync: the cache delivers its objects again\n")
	lesson.Until(ctx, "the handler with resyncs has 4 notifications of a", func() bool { return len(s.resynced.of("a")) == 4 })
	requests, others, before := len(s.requests.All()), s.quick.count(""), s.resynced.count("")
	delivered := func() (names []string, changed int) {
		for _, n := range s.resynced.all()[before:] {
			if n.kind != "resynced" {
				changed++
			}
			names = append(names, n.name)
		}
		slices.Sort(names)
		return slices.Compact(names), changed
	}
	lesson.Until(ctx, "a resync is delivered", func() bool { names, _ := delivered(); return len(names) == 3 })
	names, changed := delivered()
	s.Printf("   delivered as updates: %s; with a changed resourceVersion: %d; requests sent: %d\n",
		strings.Join(names, ", "), changed, len(s.requests.All())-requests)
	s.Printf("   delivered to a handler without resyncs: %d\n", s.quick.count("")-others)
}

func (s *session) seeDeletion(ctx context.Context) {
	s.Printf("5. A deletion that the watch reported\n")
	s.DeleteConfigMap(ctx, "a")
	lesson.Until(ctx, "the deletion of a is delivered", func() bool { return len(s.quick.deletions()) == 1 })
	deleted := s.quick.deletions()[0]
	s.Printf("   %s: final state known: %t, value %q\n", deleted.GetName(), deleted.FinalStateUnknown == nil, deleted.OptionalObj.Data["value"])
}

func (s *session) missDeletion(ctx context.Context) {
	s.Printf("6. A deletion while the watch is interrupted, found by the list that follows\n")
	s.link.Cut()
	s.UpdateConfigMap(ctx, "b", "2")
	s.DeleteConfigMap(ctx, "b")
	s.Printf("   b was set to \"2\" and deleted; the cache still has %d objects\n", len(s.informer.GetStore().List()))
	s.link.Restore()
	lesson.Until(ctx, "the deletion of b is delivered", func() bool { return len(s.quick.deletions()) == 2 })
	deleted := s.quick.deletions()[1]
	s.Printf("   %s: final state known: %t, the last state in the cache: value %q\n", deleted.GetName(), deleted.FinalStateUnknown == nil, s.quick.last("b").Data["value"])
	s.Printf("   all notifications about b: %s\n", strings.Join(s.quick.of("b"), ", "))
}
