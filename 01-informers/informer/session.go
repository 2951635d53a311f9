package main

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/handmade"
	"example.com/workbook/01-informers/internal/lesson"
)

// session is one run of the lesson. It records what the parts report.
type session struct {
	*lesson.Env
	// links are those of the two informers.
	links []*lesson.Link
	// events are those since the last print.
	events lesson.Record[handmade.Event]
}

// listerWatcher returns the input of one informer, which can be interrupted.
func (s *session) listerWatcher() cache.ListerWatcher {
	link, client := lesson.NewLink(s.Config)
	s.links = append(s.links, link)
	return cache.NewFilteredListWatchFromClient(client.CoreV1().RESTClient(), "configmaps", s.Namespace,
		func(options *metav1.ListOptions) { options.LabelSelector = lesson.Label })
}

// observe is called by the parts. It drops bookmarks, because the server sends them at any time.
func (s *session) observe(event handmade.Event) {
	if !strings.EqualFold(event.Type, handmade.Bookmark) {
		s.events.Add(event)
	}
}

// line formats an event for the output.
func line(event handmade.Event) string {
	what := strings.TrimSpace(event.Type + " " + event.Key.Name)
	if event.Stage == handmade.StageDone {
		what = event.Key.Name
	}
	text := fmt.Sprintf("%-8s %s", event.Stage, what)
	if event.Count > 0 {
		text += fmt.Sprintf(", objects: %d", event.Count)
	}
	return text
}

// printUntilDone waits until the worker is done with the one object, and prints the events since the last print.
func (s *session) printUntilDone(ctx context.Context) {
	lesson.Until(ctx, "the worker is done", func() bool {
		events := s.events.All()
		return len(events) > 0 && events[len(events)-1].Stage == handmade.StageDone
	})
	for _, event := range s.events.Take() {
		s.Printf("   %s\n", line(event))
	}
}
