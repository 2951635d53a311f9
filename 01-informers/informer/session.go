package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/handmade"
	"example.com/workbook/01-informers/internal/lesson"
)

// session is one run of the lesson. It changes objects in the cluster, and records what the parts report.
type session struct {
	*lesson.Env
	// links are those of the two informers.
	links []*lesson.Link

	mu      sync.Mutex
	events  []handmade.Event // since the last print
	marked  int              // until ignores the events before this index
	changes int
}

// listerWatcher returns the input of one informer, which can be interrupted.
func (s *session) listerWatcher() (cache.ListerWatcher, error) {
	link, client, err := lesson.NewLink(s.Config)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	s.links = append(s.links, link)
	return cache.NewFilteredListWatchFromClient(client.CoreV1().RESTClient(), "configmaps", s.Namespace,
		func(options *metav1.ListOptions) { options.LabelSelector = lesson.Label }), nil
}

// interrupt runs changes while the watches of both informers are interrupted.
func (s *session) interrupt(ctx context.Context, changes func() error) error {
	for _, link := range s.links {
		if err := link.Cut(ctx); err != nil {
			return fmt.Errorf("waiting for the watch to end: %w", err)
		}
	}
	if err := changes(); err != nil {
		return err
	}
	for _, link := range s.links {
		link.Restore()
	}
	return nil
}

func (s *session) create(ctx context.Context, name string) error {
	_, err := s.CreateConfigMap(ctx, name, "")
	return err
}

func (s *session) update(ctx context.Context, name string) error {
	s.changes++
	return s.UpdateConfigMap(ctx, name, fmt.Sprint(s.changes))
}

// observe is called by the parts. It drops bookmarks, because the server sends them at any time.
func (s *session) observe(event handmade.Event) {
	if event.Type == "BOOKMARK" || event.Type == "Bookmark" || event.Type == handmade.Bookmark {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, event)
}

// line formats an event for the output.
func line(event handmade.Event) string {
	what := strings.TrimSpace(event.Type + " " + event.Key.Name)
	if event.Stage == handmade.StageDone {
		what = event.Key.Name
	}
	text := fmt.Sprintf("%-8s %s", event.Stage, what)
	switch {
	case event.Tombstone:
		text += " (a tombstone: the watch missed the deletion)"
	case event.Count > 0:
		text += fmt.Sprintf(", objects: %d", event.Count)
	case event.Stage == handmade.StageWatch && event.Err != nil:
		text += ": " + event.Err.Error()
	}
	return text
}

// name identifies an event for until: "done NAME" or "STAGE TYPE NAME".
func name(event handmade.Event) string {
	if event.Stage == handmade.StageDone {
		return "done " + event.Key.Name
	}
	return fmt.Sprintf("%s %s %s", event.Stage, event.Type, event.Key.Name)
}

// until waits until each of these events has occurred since the last print or mark, in any order.
func (s *session) until(ctx context.Context, names ...string) error {
	return lesson.Until(ctx, fmt.Sprintf("%q have occurred", names), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		missing := slices.Clone(names)
		for _, event := range s.events[s.marked:] {
			if at := slices.Index(missing, name(event)); at >= 0 {
				missing = slices.Delete(missing, at, at+1)
			}
		}
		return len(missing) == 0
	})
}

func (s *session) mark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marked = len(s.events)
}

// print prints the events since the last print, in order.
func (s *session) print() { s.printIf(func(handmade.Event) bool { return true }) }

// printOnly prints only the events of these stages.
func (s *session) printOnly(stages ...handmade.Stage) {
	s.printIf(func(event handmade.Event) bool { return slices.Contains(stages, event.Stage) })
}

// printBy prints the events object by object, "" for those without one. The worker runs while the informer
// calls the handler for the next object, so that events of different objects have no fixed order.
func (s *session) printBy(objects ...string) {
	s.mu.Lock()
	slices.SortStableFunc(s.events, func(a, b handmade.Event) int {
		return slices.Index(objects, a.Key.Name) - slices.Index(objects, b.Key.Name)
	})
	s.mu.Unlock()
	s.print()
}

func (s *session) printIf(selected func(handmade.Event) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, event := range s.events {
		if selected(event) {
			s.Printf("   %s\n", line(event))
		}
	}
	s.events, s.marked = nil, 0
}
