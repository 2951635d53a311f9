// Package reflector is exercise 06a: keep a store equal to the API server, also when that is away.
package reflector

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/exercises/internal/follow"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry func(ctx context.Context, client kubernetes.Interface, namespace string, store cache.Store,
	sleep func(ctx context.Context, pause time.Duration))

const (
	patience = 5 * time.Second
	// failures is how many requests fail in a row: as many as it takes until the pauses are no longer than the last one.
	failures = 7
	longest  = 30 * time.Second
)

// Check compares the store with what happened, and the pauses with the requests that failed.
func Check(t *check.T, work check.Work[Entry]) {
	if os.Getenv(variable) != "" {
		printPauses(work.Entry)
	}
	ok := t.Behaviour("what is there comes into the store", func(b *check.B) {
		r := start(b, work.Entry, 0)
		r.has("a=1 b=1")
	})
	ok = ok && t.Behaviour("each change comes into the store", func(b *check.B) {
		r := begun(b, work.Entry)
		r.Create("c")
		r.Delete("b")
		r.has("a=2 c=1")
		// A watch that asks for bookmarks gets one: it is no ConfigMap.
		r.Wire.Bookmark(r.List().ResourceVersion)
		r.Wire.CutWatches()
		r.Wire.Release()
		r.Create("d")
		r.has("a=2 c=1 d=1")
	})
	if !ok {
		return
	}
	t.Behaviour("when a watch ends, the next one begins at once, without a list", func(b *check.B) {
		r := begun(b, work.Entry)
		seen := r.List().Items[0].ResourceVersion
		r.away(0)
		if n := r.lists(); n > 1 {
			b.Fatalf("%d lists were requested", n)
		}
		watches := r.Wire.Requests("watch")
		// A watch without a resourceVersion, which cannot be compared, begins anew.
		order, err := resourceversion.CompareResourceVersion(watches[len(watches)-1].Query.Get("resourceVersion"), seen)
		if err != nil || order < 0 {
			b.Fatalf("the next watch begins before a=2, which the last one has brought")
		}
		if len(r.paused()) > 0 {
			b.Fatalf("it paused, and no request had failed")
		}
	})
	ok = t.Behaviour("a first list that fails is repeated, after a pause", func(b *check.B) {
		r := start(b, work.Entry, 2)
		r.has("a=1 b=1")
		if n := len(r.paused()); n < 2 {
			b.Fatalf("two lists have failed, and there were %d pauses", n)
		}
	})
	if !ok {
		return
	}
	pauses(t, work.Entry)
	expired(t, work.Entry)
	t.Behaviour("it returns when its context ends", func(b *check.B) {
		r := begun(b, work.Entry)
		r.Stop()
	})
}

// expired checks what comes after a 410.
func expired(t *check.T, entry Entry) {
	t.Behaviour("after a 410 in the stream the store becomes what the new list has", func(b *check.B) {
		r := begun(b, entry)
		r.Wire.Gap(true, func() { r.Delete("b"); r.Create("c") })
		r.has("a=2 c=1")
	})
	t.Behaviour("after a 410 as the status of the response, too", func(b *check.B) {
		r := begun(b, entry)
		r.Wire.Gap(false, func() { r.Delete("b"); r.Create("c") })
		r.has("a=2 c=1")
	})
	t.Behaviour("until the new list has come, the store has what it had", func(b *check.B) {
		r := begun(b, entry)
		r.Wire.Fail(failures, kube.Lists)
		r.Wire.Gap(true, func() { r.Delete("b"); r.Create("c") })
		r.has("a=2 c=1")
		for _, p := range r.paused() {
			if p.store != "a=2 b=1" && p.store != "a=2 c=1" {
				b.Fatalf("while the list failed, a reader of the store found [%s], and before that [a=2 b=1]", p.store)
			}
		}
	})
}

// pauses checks what comes after a request that fails.
func pauses(t *check.T, entry Entry) {
	t.Behaviour("while the API server is away, each pause is twice as long as the last one, up to 30 s", func(b *check.B) {
		r := begun(b, entry)
		expected := shortest()
		for i, pause := range r.away(failures) {
			if pause < expected[i] {
				b.Fatalf("after %d failures in a row the pause is shorter than %s", i+1, expected[i])
			}
			if pause > 2*expected[i] {
				b.Fatalf("after %d failures in a row the pause is longer than %s and as much again", i+1, expected[i])
			}
		}
	})
	t.Behaviour("two programs do not pause equally long", func(b *check.B) {
		r := begun(b, entry)
		if slices.Equal(r.away(failures), shortest()) {
			b.Fatalf("the pauses are 1 s, 2 s, 4 s and so on, and none is longer: nothing in them is random")
		}
		if longer := r.longerBy(3); longer < 1.5 {
			b.Fatalf("of %d pauses none is longer by half: as much again may be added to each", 3*failures)
		}
		// One that makes no pause at all is another behaviour's to find.
		if first := pausesOfAProgram(b); first != "" && first == pausesOfAProgram(b) {
			b.Fatalf("a program that is started twice makes the same %d pauses: what is random in them is the same in all programs", failures)
		}
	})
	t.Behaviour("after a request that succeeds, the pauses begin anew", func(b *check.B) {
		r := begun(b, entry)
		r.away(failures)
		if r.away(1)[0] > 2*time.Second {
			b.Fatalf("one request failed after others had succeeded, and the pause is longer than one second and as much again")
		}
	})
}

// longerBy lets the API server be away n times. It returns the most by which a pause is longer than the shortest.
func (r *reflection) longerBy(n int) float64 {
	most := 0.0
	for range n {
		expected := shortest()
		for i, pause := range r.away(failures) {
			if pause < expected[i] {
				return 2 // another behaviour's to find
			}
			most = max(most, float64(pause)/float64(expected[i]))
		}
	}
	return most
}

// shortest are the pauses after failures in a row, with nothing random.
func shortest() []time.Duration {
	pauses := make([]time.Duration, failures)
	pause := time.Second
	for i := range pauses {
		pauses[i] = pause
		pause = min(2*pause, longest)
	}
	return pauses
}

// reflection is the reader's function at work, with its store and its pauses.
type reflection struct {
	*follow.Run
	b     *check.B
	store cache.Store

	mu     sync.Mutex
	pauses []pause
}

// pause is one that the reader's function makes.
type pause struct {
	// requests is how many there were before it.
	requests int
	long     time.Duration
	// store is what the store has meanwhile.
	store string
}

// start creates a=1 and b=1, and starts the reader's function. Its first requests fail.
func start(b *check.B, entry Entry, failing int) *reflection {
	r := &reflection{b: b, store: cache.NewStore(cache.MetaNamespaceKeyFunc)}
	ready := make(chan struct{})
	r.Run = follow.Start(b, func(ctx context.Context, client kubernetes.Interface, namespace string,
		_ func(watch.EventType, *corev1.ConfigMap),
	) error {
		<-ready
		entry(ctx, client, namespace, r.store, r.sleep)
		return nil
	}, "a", "b")
	r.Wire.Fail(failing, kube.Lists)
	close(ready)
	return r
}

// begun is a run that has listed, and has stored a change by its watch.
func begun(b *check.B, entry Entry) *reflection {
	r := start(b, entry, 0)
	r.has("a=1 b=1")
	r.Watching()
	r.Set("a", "2")
	r.has("a=2 b=1")
	return r
}

func (r *reflection) sleep(ctx context.Context, long time.Duration) {
	p := pause{requests: len(r.Wire.Requests()), long: long, store: r.content()}
	r.b.Event("  a pause of %s", long.Round(time.Second/10))
	r.mu.Lock()
	r.pauses = append(r.pauses, p)
	r.mu.Unlock()
	// A moment, for a function that does nothing else.
	select {
	case <-ctx.Done():
	case <-time.After(time.Millisecond):
	}
}

// paused are the pauses so far.
func (r *reflection) paused() []pause {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.pauses)
}

// away cuts the watch and lets n requests fail, until a change has come by a new watch. It returns the pause after each of them.
func (r *reflection) away(n int) []time.Duration {
	before := len(r.Wire.Requests())
	r.Wire.Fail(n, func(kube.Request) bool { return true })
	r.Wire.CutWatches()
	r.Create("c")
	r.Wire.Release()
	r.has("a=2 b=1 c=1")
	r.Watching()
	r.Delete("c")
	r.has("a=2 b=1")
	pauses := make([]time.Duration, n)
	for _, p := range r.paused() {
		if i := p.requests - before - 1; i >= 0 && i < n {
			pauses[i] += p.long
		}
	}
	return pauses
}

// lists is how many lists were requested, streaming lists among them.
func (r *reflection) lists() int {
	n := 0
	for _, request := range r.Wire.Requests() {
		if kube.Lists(request) {
			n++
		}
	}
	return n
}

func (r *reflection) content() string {
	var all []string
	for _, object := range r.store.List() {
		if object, ok := object.(*corev1.ConfigMap); ok {
			all = append(all, object.Name+"="+object.Data["value"])
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// has waits until the store has this.
func (r *reflection) has(want string) {
	r.b.Eventually(patience, func() string {
		if got := r.content(); got != want {
			return "the store has [" + got + "], and the API server [" + want + "]"
		}
		return ""
	})
}
