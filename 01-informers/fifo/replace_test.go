package main

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/cache"
)

func TestHasSynced(t *testing.T) {
	t.Parallel()
	pop := func(queue cache.Queue) error {
		_, err := queue.Pop(func(any, bool) error { return nil })
		return err
	}
	first := replace(9, object("a", 1), object("b", 2))
	tests := map[string]struct {
		calls []func(cache.Queue) error
		want  map[string]bool
	}{
		"nothing happened":             {nil, map[string]bool{}},
		"the list is queued":           {[]func(cache.Queue) error{first}, map[string]bool{}},
		"one Pop":                      {[]func(cache.Queue) error{first, pop}, map[string]bool{"RealFIFO, AtomicEvents": true}},
		"as many as objects":           {[]func(cache.Queue) error{first, pop, on(cache.Queue.Add, "c", 3), pop}, map[string]bool{"DeltaFIFO": true, "RealFIFO, event by event": true, "RealFIFO, AtomicEvents": true}},
		"an empty list":                {[]func(cache.Queue) error{replace(9)}, map[string]bool{"DeltaFIFO": true, "RealFIFO, event by event": true}},
		"an empty list, popped":        {[]func(cache.Queue) error{replace(9), on(cache.Queue.Add, "a", 1), pop}, map[string]bool{"DeltaFIFO": true, "RealFIFO, event by event": true, "RealFIFO, AtomicEvents": true}},
		"an event that came before it": {[]func(cache.Queue) error{on(cache.Queue.Add, "a", 1)}, map[string]bool{"DeltaFIFO": true, "RealFIFO, event by event": true, "RealFIFO, AtomicEvents": true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, kind := range kinds {
				g := NewWithT(t)
				queue := kind.make(known{})
				for _, call := range test.calls {
					g.Expect(call(queue)).To(Succeed())
				}
				g.Expect(queue.HasSynced()).To(Equal(test.want[kind.name]), kind.name)
				g.Expect(cache.IsDone(queue.HasSyncedChecker())).To(Equal(test.want[kind.name]), kind.name)
			}
		})
	}
}
