package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"example.com/workbook/01-informers/internal/handmade"
	"example.com/workbook/01-informers/internal/lesson"
)

// ours keeps the ConfigMaps out that a cluster puts in every namespace.
const ours = "lesson=informer"

// patience is how long anything may take here. Only a cluster that is in trouble needs it.
const patience = 30 * time.Second

// story makes things happen in the cluster, and writes down what the parts tell.
type story struct {
	world *lesson.World
	lines []*handmade.Line

	mu      sync.Mutex
	events  []handmade.Event // since the last print
	marked  int              // until looks only behind this one
	changed chan struct{}
	changes int
}

func newStory(world *lesson.World) *story {
	return &story{world: world, changed: make(chan struct{}, 1)}
}

func (s *story) configMaps() typedcorev1.ConfigMapInterface {
	return s.world.Client.CoreV1().ConfigMaps(s.world.Namespace)
}

// line makes a line to the API server for one informer.
func (s *story) line() *handmade.Line {
	line := handmade.NewLine(handmade.Labelled(handmade.Typed(s.configMaps()), ours))
	s.lines = append(s.lines, line)
	return line
}

func (s *story) create(ctx context.Context, name string) error {
	labels := map[string]string{"lesson": "informer"}
	_, err := s.configMaps().Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating ConfigMap %s: %w", name, err)
	}
	return nil
}

func (s *story) change(ctx context.Context, name string) error {
	s.changes++
	patch := fmt.Appendf(nil, `{"data":{"change":"%d"}}`, s.changes)
	if _, err := s.configMaps().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("changing ConfigMap %s: %w", name, err)
	}
	return nil
}

func (s *story) remove(ctx context.Context, name string) error {
	if err := s.configMaps().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("deleting ConfigMap %s: %w", name, err)
	}
	return nil
}

// observe is called by the parts. Bookmarks come when the server likes, and are left out.
func (s *story) observe(event handmade.Event) {
	if event.Type == "BOOKMARK" || event.Type == "Bookmark" || event.Type == handmade.Bookmark {
		return
	}
	s.mu.Lock()
	s.events = append(s.events, event)
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// told is how an event is printed.
func told(event handmade.Event) string {
	what := strings.TrimSpace(event.Type + " " + event.Key.Name)
	if event.Stage == handmade.StageDone {
		what = event.Key.Name
	}
	text := fmt.Sprintf("%-8s %s", event.Stage, what)
	switch {
	case event.Tombstone:
		text += " (a tombstone: nobody saw it go)"
	case event.Count > 0:
		text += fmt.Sprintf(", objects: %d", event.Count)
	case event.Stage == handmade.StageWatch && event.Err != nil:
		text += ": " + event.Err.Error()
	}
	return text
}

// short is what until compares: done is "done NAME", everything else "stage type NAME".
func short(event handmade.Event) string {
	if event.Stage == handmade.StageDone {
		return "done " + event.Key.Name
	}
	return fmt.Sprintf("%s %s %s", event.Stage, event.Type, event.Key.Name)
}

// until waits until each of these has been told since the last print or mark, in any order.
func (s *story) until(ctx context.Context, wanted ...string) error {
	err := s.waitFor(ctx, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		missing := slices.Clone(wanted)
		for _, event := range s.events[s.marked:] {
			if at := slices.Index(missing, short(event)); at >= 0 {
				missing = slices.Delete(missing, at, at+1)
			}
		}
		return len(missing) == 0
	})
	if err != nil {
		return fmt.Errorf("waiting for %q: %w", wanted, err)
	}
	return nil
}

// waitFor looks again after every event, and now and then.
func (s *story) waitFor(ctx context.Context, met func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("it took too long"))
	defer cancel()
	for !met() {
		select {
		case <-s.changed:
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (s *story) mark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marked = len(s.events)
}

// print prints what was told since the last print, in order.
func (s *story) print() { s.printIf(func(handmade.Event) bool { return true }) }

// printOnly prints only what happened in these stages.
func (s *story) printOnly(stages ...handmade.Stage) {
	s.printIf(func(event handmade.Event) bool { return slices.Contains(stages, event.Stage) })
}

// printBy prints object by object, "" for what is about none: the worker goes on while the next handler is
// called, so that there is no one order between two objects.
func (s *story) printBy(names ...string) {
	s.mu.Lock()
	slices.SortStableFunc(s.events, func(a, b handmade.Event) int {
		return slices.Index(names, a.Key.Name) - slices.Index(names, b.Key.Name)
	})
	s.mu.Unlock()
	s.print()
}

func (s *story) printIf(wanted func(handmade.Event) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, event := range s.events {
		if wanted(event) {
			s.world.Printf("   %s\n", told(event))
		}
	}
	s.events, s.marked = nil, 0
}
