// Package singlewriter is exercise 24a: two replicas, of which one writes, whatever becomes of the other one.
package singlewriter

import (
	"context"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/shared/exercise/check"
)

// Entry is what the reader writes.
type Entry func(ctx context.Context, config *rest.Config, herd client.ObjectKey, lease time.Duration,
	next func(ctx context.Context) (string, error)) error

const (
	patience = 15 * time.Second
	// asked is how often the other replica reads the lease before the check believes that it waits.
	asked = 3
	// some is how many entries a leader has written that works.
	some = 3
)

// Check runs replicas, each in a process of its own: this program, which calls the reader's function then.
func Check(t *check.T, work check.Work[Entry]) {
	if settings := os.Getenv(variable); settings != "" {
		os.Exit(runReplica(work.Entry, settings))
	}
	ok := t.Behaviour("one replica writes, and the other one waits for the lease", func(b *check.B) {
		s := newScene(b)
		first := s.start("first")
		s.works(first)
		s.waits(s.start("second"), asked)
	})
	if !ok {
		return
	}
	t.Behaviour("a leader that cannot renew its lease stops in time, and its process ends", func(b *check.B) {
		s := newScene(b)
		leader := s.start("first")
		s.works(leader)
		s.loseLease(leader)
	})
	t.Behaviour("a write of the old leader that arrives late does not take effect", func(b *check.B) {
		s := newScene(b)
		first := s.start("first")
		s.works(first)
		second := s.start("second")
		s.waits(second, 1)
		s.hold(first)
		s.works(second)
		s.deliver(first)
	})
}
