// Package streaming is exercise 05c: a list and the watch after it, in one request.
package streaming

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"example.com/workbook/01-informers/exercises/internal/follow"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry func(ctx context.Context, client kubernetes.Interface, namespace string,
	handle func(event watch.EventType, object *corev1.ConfigMap), synced func()) error

const (
	patience = 5 * time.Second
	// objects is how many there are before the reader's function begins.
	objects = 3
)

// Check checks where the list ends, and where the next watch begins.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("what is there is reported once, then synced is called", func(b *check.B) {
		r, begin := prepare(b, work.Entry)
		r.slow = true
		begin()
		r.Expect("ADDED a=2", "ADDED b=1", "ADDED c=1")
		r.expectSynced()
	})
	ok = ok && t.Behaviour("each change is reported once, by the same request", func(b *check.B) {
		r := begun(b, work.Entry)
		r.Delete("b")
		r.Create("d")
		r.Expect("DELETED b", "ADDED d=1")
		if n := len(r.Wire.Requests()); n != 1 {
			b.Fatalf("%d requests were sent", n)
		}
	})
	if !ok {
		return
	}
	simulated(t, work.Entry)
	t.Behaviour("what was there is not reported again after the watch has ended", func(b *check.B) {
		r := begin(b, work.Entry)
		r.Expect("ADDED a=2", "ADDED b=1", "ADDED c=1")
		r.expectSynced()
		r.Wire.CutWatches()
		r.Wire.Release()
		r.ExpectNothingElse()
	})
	t.Behaviour("what changes while no watch is open is reported once, without a second list", func(b *check.B) {
		r := begun(b, work.Entry)
		r.Wire.CutWatches()
		r.Create("d")
		r.Delete("b")
		r.Wire.Release()
		r.Expect("ADDED d=1", "DELETED b")
		r.Wire.CutWatches()
		r.Wire.Release()
		r.ExpectNothingElse()
		lists := 0
		for _, request := range r.Wire.Requests() {
			if kube.Lists(request) {
				lists++
			}
		}
		if lists != 1 {
			b.Fatalf("%d lists were requested, streaming or not", lists)
		}
	})
	t.Behaviour("it returns when its context ends", func(b *check.B) {
		r := begun(b, work.Entry)
		r.Stop()
	})
}

// simulated checks a stream that the check writes itself.
func simulated(t *check.T, entry Entry) {
	t.Behaviour("a pause in the stream is not the end of the list", func(b *check.B) {
		r, s := beginSimulated(b, entry)
		s.added("a")
		r.pause()
		s.added("b")
		s.added("c")
		s.listEnds()
		r.Expect("ADDED a=2", "ADDED b=1", "ADDED c=1")
		r.expectSynced()
	})
	t.Behaviour("a bookmark without the annotation is not the end of the list", func(b *check.B) {
		r, s := beginSimulated(b, entry)
		s.added("a")
		s.bookmark()
		s.added("b")
		s.added("c")
		s.listEnds()
		r.Expect("ADDED a=2", "ADDED b=1", "ADDED c=1")
		r.expectSynced()
	})
	t.Behaviour("a later bookmark is where the next watch begins", func(b *check.B) {
		r, s := beginSimulated(b, entry)
		s.added("a")
		s.added("b")
		s.added("c")
		s.listEnds()
		r.Expect("ADDED a=2", "ADDED b=1", "ADDED c=1")
		r.expectSynced()
		// A change elsewhere, so that the resourceVersion of now is a later one.
		kube.Namespace(b)
		version := s.bookmark()
		s.end()
		b.Eventually(patience, func() string {
			watches := r.Wire.Requests("watch")
			if len(watches) < 2 {
				return "the watch has ended, and no other one is requested"
			}
			if watches[1].Query.Get("resourceVersion") != version {
				b.Fatalf("the next watch does not begin at the resourceVersion of the last bookmark")
			}
			if watches[1].Query.Get("allowWatchBookmarks") != "true" {
				b.Fatalf("the next watch does not ask for bookmarks")
			}
			return ""
		})
		r.ExpectNothingElse()
		r.expectSynced()
	})
}

// run is the reader's function at work, with its calls of synced.
type run struct {
	*follow.Run
	b *check.B

	// slow says that the first call of handle takes until synced is called, or a moment.
	slow  bool
	first sync.Once

	mu sync.Mutex
	// reported is how often handle has returned, and synced how often it had at each call of synced.
	reported int
	synced   []int
}

// prepare creates a=2, b=1 and c=1, of which a has changed last. The reader's function begins when begin is called.
func prepare(b *check.B, entry Entry) (r *run, begin func()) {
	r = &run{b: b}
	ready := make(chan struct{})
	r.Run = follow.Start(b, func(ctx context.Context, client kubernetes.Interface, namespace string,
		handle func(watch.EventType, *corev1.ConfigMap),
	) error {
		<-ready
		return entry(ctx, client, namespace, func(event watch.EventType, object *corev1.ConfigMap) {
			if r.slow {
				r.first.Do(r.pause)
			}
			handle(event, object)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.reported++
		}, r.noteSynced)
	}, "a", "b", "c")
	r.Set("a", "2")
	return r, func() { close(ready) }
}

func begin(b *check.B, entry Entry) *run {
	r, begin := prepare(b, entry)
	begin()
	return r
}

// begun is a run that has listed, and has reported a change.
func begun(b *check.B, entry Entry) *run {
	r := begin(b, entry)
	r.Expect("ADDED a=2", "ADDED b=1", "ADDED c=1")
	r.expectSynced()
	r.Set("a", "3")
	r.Expect("MODIFIED a=3")
	return r
}

func (r *run) noteSynced() {
	r.b.Event("  synced")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.synced = append(r.synced, r.reported)
}

func (r *run) syncs() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.synced
}

// expectSynced waits until synced was called, once, after all objects.
func (r *run) expectSynced() {
	r.b.Eventually(patience, func() string {
		switch synced := r.syncs(); {
		case len(synced) == 0:
			return "synced was not called"
		case synced[0] != objects:
			r.b.Fatalf("synced was called after %d of %d objects", synced[0], objects)
		case len(synced) > 1:
			r.b.Fatalf("synced was called %d times", len(synced))
		}
		return ""
	})
}

// pause lets a program do what it does after some time without an event. It counts turns, and not time: where the machine is
// busy, the program has as many of them.
func (r *run) pause() {
	r.b.Event("  a pause")
	for range 300 {
		if len(r.syncs()) > 0 {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
}
