// Package everynode is exercise 01b: wait for the work of a DaemonSet.
package everynode

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/kubernetes"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry func(ctx context.Context, client kubernetes.Interface, namespace, name string) error

// patience is for a look of the reader's code, which may be some seconds after the one before.
const patience = 15 * time.Second

// Check writes the status of a DaemonSet while the reader's code waits.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("it returns nil when the work is done on all nodes", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.status(2, 2)
		s.wait()
		s.returned()
	})
	if !ok {
		return
	}
	t.Behaviour("it waits for a node that is not ready", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.status(2, 1)
		s.wait()
		s.waits("one of two nodes is not ready")
		s.status(2, 2)
		s.returned()
	})
	t.Behaviour("a node that joins meanwhile counts", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.status(2, 1)
		s.wait()
		s.waits("one of two nodes is not ready")
		s.status(3, 2)
		s.waits("a third node has joined, and is not ready")
		s.status(3, 3)
		s.returned()
	})
	t.Behaviour("an empty status is not the end", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.wait()
		s.waits("the DaemonSet controller has not seen the DaemonSet yet")
		s.status(2, 2)
		s.returned()
	})
	t.Behaviour("nor is one of before a change", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.status(2, 2)
		s.change()
		s.wait()
		s.waits("the DaemonSet was changed, and its controller has not seen that yet")
		s.status(2, 1)
		s.waits("one of two nodes is not ready")
		s.status(2, 2)
		s.returned()
	})
	t.Behaviour("if the DaemonSet is deleted, it returns an error", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.status(2, 1)
		s.wait()
		s.waits("one of two nodes is not ready")
		s.remove()
		if s.end() == nil {
			b.Fatalf("the DaemonSet was deleted, and WaitDone returned nil")
		}
	})
	t.Behaviour("a request that fails for a moment is not the end", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.status(2, 1)
		s.wire.Fail(1, kube.Reads)
		s.wait()
		s.waits("the first request has failed, and one of two nodes is not ready")
		s.wire.Fail(1, kube.Reads)
		s.waits("a request has failed, and one of two nodes is not ready")
		s.status(2, 2)
		s.returned()
	})
	t.Behaviour("if ctx ends, it returns the error of ctx", func(b *check.B) {
		s := newScene(b, work.Entry)
		s.status(2, 1)
		s.wait()
		s.waits("one of two nodes is not ready")
		s.cancel()
		if err := s.end(); !errors.Is(err, context.Canceled) {
			b.Fatalf("ctx was cancelled, and WaitDone returned %v", err)
		}
	})
}
