package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/lesson"
)

// resyncPeriod is the shortest that is possible: minimumResyncPeriod in shared_informer.go.
const resyncPeriod = time.Second

func (s *session) shareOneWatch(ctx context.Context) error {
	s.Printf("1. One watch for several handlers\n")
	s.factory = informers.NewSharedInformerFactoryWithOptions(s.client, resyncPeriod,
		informers.WithNamespace(s.Namespace), informers.WithTweakListOptions(selectOwn))
	// The factory returns the same informer twice: it has one per Go type.
	s.informer = s.factory.Core().V1().ConfigMaps().TypedInformer()
	again := s.factory.Core().V1().ConfigMaps().TypedInformer()

	gate := make(chan struct{})
	s.open = func() { close(gate) }
	s.quick, s.slow, s.resynced = &recorder{}, &recorder{gate: gate}, &recorder{}
	never := cache.HandlerOptions{ResyncPeriod: new(time.Duration(0))}
	for _, handler := range []struct {
		*recorder
		options []cache.HandlerOptions
	}{
		{s.quick, []cache.HandlerOptions{never}},
		{s.slow, []cache.HandlerOptions{never}},
		{s.resynced, nil}, // the informer's own period
	} {
		registration, err := again.AddTypedEventHandler(handler.recorder, handler.options...)
		if err != nil {
			return fmt.Errorf("adding a handler: %w", err)
		}
		s.registrations = append(s.registrations, registration)
	}
	s.Printf("   before the start: %d requests\n", len(s.requests.All()))
	s.factory.StartWithContext(ctx)
	if err := s.factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		return err
	}
	s.Printf("   %d handlers, %d objects: %d request, a watch that begins with the list\n",
		len(s.registrations), len(s.informer.GetStore().List()), len(s.requests.All()))
	return nil
}

func (s *session) awaitSync(ctx context.Context) error {
	s.Printf("2. The cache has synced; that does not mean that the handlers have\n")
	quick, slow := s.registrations[0].HasSyncedChecker(), s.registrations[1].HasSyncedChecker()
	if !cache.WaitFor(ctx, "", s.informer.HasSyncedChecker(), quick) {
		return context.Cause(ctx)
	}
	s.Printf("   cache: %t, quick handler: %t, slow handler: %t (notified of %d of 3 objects)\n",
		cache.IsDone(s.informer.HasSyncedChecker()), cache.IsDone(quick), cache.IsDone(slow), s.slow.count(""))
	return nil
}

func (s *session) keepOrder(ctx context.Context) error {
	s.Printf("3. Each handler has a buffer of its own\n")
	for _, value := range []string{"2", "3", "4"} {
		if err := s.UpdateConfigMap(ctx, "a", value); err != nil {
			return err
		}
	}
	if err := lesson.Until(ctx, "the quick handler has 4 notifications of a", func() bool { return len(s.quick.of("a")) == 4 }); err != nil {
		return err
	}
	s.Printf("   the slow handler is still in its first call; the quick one was notified of a: %s\n", strings.Join(s.quick.of("a"), ", "))
	s.open()
	if !cache.WaitFor(ctx, "", s.registrations[1].HasSyncedChecker()) {
		return context.Cause(ctx)
	}
	if err := lesson.Until(ctx, "the slow handler has 4 notifications of a", func() bool { return len(s.slow.of("a")) == 4 }); err != nil {
		return err
	}
	s.Printf("   the slow one was notified of a, later:  %s\n", strings.Join(s.slow.of("a"), ", "))
	s.Printf("   both got the same object in memory: %t. So neither may change it\n", s.quick.last("a") == s.slow.last("a"))
	return nil
}

func (s *session) resync(ctx context.Context) error {
	s.Printf("4. A resync: the cache delivers its objects again\n")
	if err := lesson.Until(ctx, "the handler with resyncs has 4 notifications of a", func() bool { return len(s.resynced.of("a")) == 4 }); err != nil {
		return err
	}
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
	if err := lesson.Until(ctx, "a resync is delivered", func() bool { names, _ := delivered(); return len(names) == 3 }); err != nil {
		return err
	}
	names, changed := delivered()
	s.Printf("   delivered as updates: %s; with a changed resourceVersion: %d; requests sent: %d\n",
		strings.Join(names, ", "), changed, len(s.requests.All())-requests)
	s.Printf("   delivered to a handler without resyncs: %d\n", s.quick.count("")-others)
	return nil
}

func (s *session) seeDeletion(ctx context.Context) error {
	s.Printf("5. A deletion that the watch reported\n")
	if err := s.DeleteConfigMap(ctx, "a"); err != nil {
		return err
	}
	if err := lesson.Until(ctx, "the deletion of a is delivered", func() bool { return len(s.quick.deletions()) == 1 }); err != nil {
		return err
	}
	deleted := s.quick.deletions()[0]
	s.Printf("   %s: final state known: %t, value %q\n", deleted.GetName(), deleted.FinalStateUnknown == nil, deleted.OptionalObj.Data["value"])
	return nil
}

func (s *session) missDeletion(ctx context.Context) error {
	s.Printf("6. A deletion while the watch is interrupted, found by the list that follows\n")
	if err := s.link.Cut(ctx); err != nil {
		return fmt.Errorf("waiting for the watch to end: %w", err)
	}
	if err := s.UpdateConfigMap(ctx, "b", "2"); err != nil {
		return err
	}
	if err := s.DeleteConfigMap(ctx, "b"); err != nil {
		return err
	}
	s.Printf("   b was set to \"2\" and deleted; the cache still has %d objects\n", len(s.informer.GetStore().List()))
	s.link.Restore()
	if err := lesson.Until(ctx, "the deletion of b is delivered", func() bool { return len(s.quick.deletions()) == 2 }); err != nil {
		return err
	}
	deleted := s.quick.deletions()[1]
	s.Printf("   %s: final state known: %t, the last state in the cache: value %q\n", deleted.GetName(), deleted.FinalStateUnknown == nil, s.quick.last("b").Data["value"])
	s.Printf("   all notifications about b: %s\n", strings.Join(s.quick.of("b"), ", "))
	return nil
}
