// Package streams is exercise 21c: the logs of many Pods, with a limit on how many are open.
package streams

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"

	"example.com/workbook/shared/exercise/check"
)

// Entry is what the reader writes.
type Entry func(ctx context.Context, c kubernetes.Interface, namespace string, limit int, show func(pod, line string)) error

const (
	patience = 10 * time.Second
	// moment is longer than a Show takes to return that does not wait for its calls of show.
	moment = 200 * time.Millisecond
	limit  = 8
	// workers is how many Pods there are, and hanging how many of them never end.
	workers = 40
	hanging = 9
	// few is how many commands may run whose logs are all open, and written how many lines each of them writes.
	few     = limit - 1
	written = 8
)

// Check runs some workers, and then many.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("what a command writes is shown while it runs", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.call()
		for i := range few {
			s.create(name(i))
			s.runs(name(i))
		}
		for range written {
			for i := range few {
				s.writes(name(i))
				s.shows(name(i))
			}
		}
		s.watches()
		for i := range few {
			s.ends(name(i))
		}
		if s.kubelet.requested() >= few*written {
			b.Fatalf("the commands have written %d lines, and logs were requested as often, or more: Show polls", few*written)
		}
	})
	if !ok {
		return
	}
	t.Behaviour("when its context ends, it closes its logs and returns", func(b *check.B) {
		s := newScene(b, work.Entry)
		// This one was there before the call.
		s.create(name(0))
		s.runs(name(0))
		s.writes(name(0))
		s.call()
		s.shows(name(0))
		s.endsWhileItShows(name(0))
		s.stop()
		s.closed()
	})
	var crowd *scene
	t.Behaviour("the output of a command that has ended is shown, whatever hangs", func(b *check.B) {
		crowd = newScene(b, work.Entry)
		crowd.fill()
	})
	if crowd == nil {
		return
	}
	t.Behaviour(fmt.Sprintf("at most %d logs are open at the same time", limit), func(b *check.B) {
		if crowd.kubelet.mostOpen() > limit {
			b.Fatalf("of %d workers, more than %d logs were open at the same time", workers, limit)
		}
	})
	t.Behaviour("each line is shown once, and in the order in which it was written", crowd.inOrder)
}

// name is that of the worker with this number.
func name(number int) string { return fmt.Sprintf("pod-%02d", number) }

// fill lets a command end before the call, others begin that hang, then one that ends, and then all others, and waits for the output
// of all that have ended.
func (s *scene) fill() {
	early := name(workers - 1)
	s.create(early)
	s.runs(early)
	s.writes(early)
	s.ends(early)
	s.call()
	for i := range hanging {
		s.create(name(i))
		s.runs(name(i))
		s.writes(name(i))
	}
	first := name(hanging)
	s.create(first)
	s.runs(first)
	s.writes(first)
	s.ends(first)
	s.eventually(func() string {
		if s.kubelet.openNow() >= limit {
			return ""
		}
		return s.missing(first)
	})
	for i := hanging + 1; i < workers-1; i++ {
		s.create(name(i))
		s.runs(name(i))
		s.writes(name(i))
		s.writes(name(i))
	}
	for i := hanging + 1; i < workers-1; i++ {
		s.ends(name(i))
	}
	s.eventually(func() string {
		for i := hanging; i < workers; i++ {
			if text := s.missing(name(i)); text != "" {
				return text
			}
		}
		return ""
	})
	s.stop()
}
