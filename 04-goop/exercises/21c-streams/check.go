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
	limit    = 4
	// workers is how many Pods there are, and hanging how many of them never end.
	workers = 40
	hanging = 5
	// written is how many lines one command writes while it is observed.
	written = 8
)

// Check runs one worker, and then many.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("what a command writes is shown while it runs", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.call()
		s.create("pod-00")
		s.runs("pod-00")
		for range written {
			s.writes("pod-00")
			s.shows("pod-00")
		}
		s.ends("pod-00")
		if s.kubelet.requested() >= written {
			b.Fatalf("the command has written %d lines, and the log was requested as often, or more: Show polls", written)
		}
	})
	if !ok {
		return
	}
	t.Behaviour("when its context ends, it closes its logs and returns", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.call()
		s.create("pod-00")
		s.runs("pod-00")
		s.writes("pod-00")
		s.shows("pod-00")
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
		if crowd.kubelet.most > limit {
			b.Fatalf("of %d workers, more than %d logs were open at the same time", workers, limit)
		}
	})
	t.Behaviour("each line is shown once, and in the order in which it was written", crowd.inOrder)
}

// name is that of the worker with this number.
func name(number int) string { return fmt.Sprintf("pod-%02d", number) }

// fill lets commands begin that hang, then one that ends, and then all others, and waits for the output of all that have ended.
func (s *scene) fill() {
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
	for i := hanging + 1; i < workers; i++ {
		s.create(name(i))
		s.runs(name(i))
		s.writes(name(i))
		s.writes(name(i))
	}
	for i := hanging + 1; i < workers; i++ {
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
