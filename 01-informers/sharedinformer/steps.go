package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// resyncPeriod is the shortest that there is: minimumResyncPeriod in shared_informer.go.
const resyncPeriod = time.Second

func (s *session) shareOneWatch(ctx context.Context) error {
	s.Printf("1. One watch for several handlers\n")
	s.factory = informers.NewSharedInformerFactoryWithOptions(s.watched, resyncPeriod,
		informers.WithNamespace(s.Namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = label }))
	// Asked twice, the factory makes one informer: it has one per Go type.
	s.informer = s.factory.Core().V1().ConfigMaps().TypedInformer()
	again := s.factory.Core().V1().ConfigMaps().TypedInformer()

	gate := make(chan struct{})
	s.open = func() { close(gate) }
	s.quick, s.slow, s.resynced = &recorder{}, &recorder{gate: gate}, &recorder{}
	never := cache.HandlerOptions{ResyncPeriod: new(time.Duration(0))}
	for _, add := range []func() (cache.ResourceEventHandlerRegistration, error){
		func() (cache.ResourceEventHandlerRegistration, error) {
			return s.informer.AddTypedEventHandler(s.quick, never)
		},
		func() (cache.ResourceEventHandlerRegistration, error) {
			return again.AddTypedEventHandler(s.slow, never)
		},
		// Without options: the informer's own period.
		func() (cache.ResourceEventHandlerRegistration, error) {
			return again.AddTypedEventHandler(s.resynced)
		},
	} {
		registration, err := add()
		if err != nil {
			return fmt.Errorf("adding a handler: %w", err)
		}
		s.registrations = append(s.registrations, registration)
	}
	s.Printf("   before the start: %d requests\n", s.wire.requests())
	s.factory.StartWithContext(ctx)
	if err := s.factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		return err
	}
	s.Printf("   %d handlers, %d objects: %d request, a watch that begins with the list\n",
		len(s.registrations), len(s.informer.GetStore().List()), s.wire.requests())
	return nil
}

func (s *session) awaitSync(ctx context.Context) error {
	s.Printf("2. The cache has synced; that says nothing of the handlers\n")
	quick, slow := s.registrations[0].HasSyncedChecker(), s.registrations[1].HasSyncedChecker()
	if !cache.WaitFor(ctx, "", s.informer.HasSyncedChecker(), quick) {
		return context.Cause(ctx)
	}
	s.Printf("   cache: %t, quick handler: %t, slow handler: %t (it has been told of %d of 3 objects)\n",
		cache.IsDone(s.informer.HasSyncedChecker()), cache.IsDone(quick), cache.IsDone(slow), s.slow.count(""))
	return nil
}

func (s *session) keepOrder(ctx context.Context) error {
	s.Printf("3. Each handler has a queue of its own\n")
	for _, value := range []string{"2", "3", "4"} {
		if err := s.set(ctx, "a", value); err != nil {
			return err
		}
	}
	if err := until(ctx, func() bool { return len(s.quick.of("a")) == 4 }); err != nil {
		return fmt.Errorf("waiting for the quick handler: %w", err)
	}
	s.Printf("   the slow handler is still in its first call; the quick one was told of a: %s\n", strings.Join(s.quick.of("a"), ", "))
	s.open()
	if !cache.WaitFor(ctx, "", s.registrations[1].HasSyncedChecker()) {
		return context.Cause(ctx)
	}
	if err := until(ctx, func() bool { return len(s.slow.of("a")) == 4 }); err != nil {
		return fmt.Errorf("waiting for the slow handler: %w", err)
	}
	s.Printf("   the slow one was told of a, later:  %s\n", strings.Join(s.slow.of("a"), ", "))
	s.Printf("   both were handed the same object in memory: %t. So none of them may change it\n", s.quick.last("a") == s.slow.last("a"))
	return nil
}

func (s *session) resync(ctx context.Context) error {
	s.Printf("4. A resync: the cache tells again what it has\n")
	if err := until(ctx, func() bool { return len(s.resynced.of("a")) == 4 }); err != nil {
		return fmt.Errorf("waiting for the handler with resyncs: %w", err)
	}
	requests, others, before := s.wire.requests(), s.quick.count(""), s.resynced.count("")
	again := func() (names []string, changed int) {
		for _, told := range s.resynced.all()[before:] {
			if told.kind != "resynced" {
				changed++
			}
			names = append(names, told.name)
		}
		slices.Sort(names)
		return slices.Compact(names), changed
	}
	if err := until(ctx, func() bool { names, _ := again(); return len(names) == 3 }); err != nil {
		return fmt.Errorf("waiting for a resync: %w", err)
	}
	names, changed := again()
	s.Printf("   told as updates: %s; with a resourceVersion that had changed: %d; requests sent: %d\n",
		strings.Join(names, ", "), changed, s.wire.requests()-requests)
	s.Printf("   told to the handler that asked for none: %d\n", s.quick.count("")-others)
	return nil
}

func (s *session) seeDeletion(ctx context.Context) error {
	s.Printf("5. A deletion that the watch reported\n")
	if err := s.remove(ctx, "a"); err != nil {
		return err
	}
	if err := until(ctx, func() bool { return len(s.quick.deletions()) == 1 }); err != nil {
		return fmt.Errorf("waiting for the deletion of a: %w", err)
	}
	deleted := s.quick.deletions()[0]
	s.Printf("   %s: final state known: %t, value %q\n", deleted.GetName(), deleted.FinalStateUnknown == nil, deleted.OptionalObj.Data["value"])
	return nil
}

func (s *session) missDeletion(ctx context.Context) error {
	s.Printf("6. A deletion during a gap, found by the list that follows\n")
	if err := s.wire.cut(ctx); err != nil {
		return fmt.Errorf("waiting for the watch to end: %w", err)
	}
	if err := s.set(ctx, "b", "2"); err != nil {
		return err
	}
	if err := s.remove(ctx, "b"); err != nil {
		return err
	}
	s.Printf("   b was set to \"2\" and deleted; the cache still has %d objects\n", len(s.informer.GetStore().List()))
	s.wire.mend()
	if err := until(ctx, func() bool { return len(s.quick.deletions()) == 2 }); err != nil {
		return fmt.Errorf("waiting for the deletion of b: %w", err)
	}
	deleted := s.quick.deletions()[1]
	s.Printf("   %s: final state known: %t, the last that the cache saw: value %q\n", deleted.GetName(), deleted.FinalStateUnknown == nil, s.quick.last("b").Data["value"])
	s.Printf("   all that the handler was ever told of b: %s\n", strings.Join(s.quick.of("b"), ", "))
	return nil
}

func (s *session) stop(cancel context.CancelFunc) error {
	s.Printf("8. The end\n")
	cancel()
	s.factory.Shutdown()
	_, err := s.informer.AddTypedEventHandler(&recorder{})
	s.Printf("   Shutdown waited for every handler: nothing more is delivered. A handler added now is refused: %t\n", err != nil)
	if calls := slices.Max([]int{s.quick.running(), s.slow.running(), s.resynced.running()}); calls > 0 {
		return fmt.Errorf("%d handler calls outlived the factory", calls)
	}
	return nil
}

// until polls for what a handler is told in its own time.
func until(ctx context.Context, condition func() bool) error {
	return wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return condition(), nil })
}
