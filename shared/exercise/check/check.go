// Package check is what the checks of exercises are written with. It needs only the standard library, because a reader
// waits for the linker at each save.
//
//	type Entry func(queue workqueue.TypedRateLimitingInterface[string]) bool
//
//	func Check(t *check.T, work check.Work[Entry]) {
//		t.Behaviour("a key that succeeds is forgotten", func(b *check.B) {
//			…
//			b.Fatalf("Forget was called %d times", n)
//		})
//	}
package check

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Work is what a check looks at.
type Work[Entry any] struct {
	// Dir is the folder of the reader's code, a solution or a mutant.
	Dir string
	// Entry is the reader's function.
	Entry Entry
}

// Files is the Entry of an exercise whose check looks at Dir only.
type Files struct{}

// T is the run of one check.
type T struct {
	ctx    context.Context
	report func(Line)
}

// Behaviour checks one thing that the reader's code does. The name is a sentence that is true of code that is right; the
// reader sees it. Behaviours run one after the other. The result says whether the behaviour is there: a check returns where what
// follows would only wait for it.
func (t *T) Behaviour(name string, body func(b *B)) bool {
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	b := &B{name: name, ctx: ctx}
	t.report(Line{Begin: name})
	done := make(chan struct{})
	go func() {
		defer func() {
			b.cleanup(cancel)
			// Deferred calls also run on the way to the end of a process that has panicked: it must not report more until then.
			if b.over.Load() {
				close(done)
			}
		}()
		body(b)
		b.over.Store(true)
		// What the reader's code does when its context ends is not what the behaviour is about.
		t.report(Line{Begin: "the end of the context, after: " + name})
	}()
	<-done
	b.mu.Lock()
	defer b.mu.Unlock()
	t.report(Line{Behaviour: name, OK: !b.failed, Seen: strings.Join(b.seen, "\n"), Timeline: b.timeline.lines()})
	return !b.failed
}

// B is the run of one behaviour. Gomega accepts it for NewWithT.
type B struct {
	name string
	ctx  context.Context
	// over is set when the body has returned, or has ended by Fatalf.
	over atomic.Bool

	mu       sync.Mutex
	failed   bool
	seen     []string
	timeline timeline
	cleanups []func()
}

// Name is the behaviour's.
func (b *B) Name() string { return b.name }

// Context ends when the behaviour has been checked, before what Cleanup was given.
func (b *B) Context() context.Context { return b.ctx }

// Helper is there for Gomega.
func (b *B) Helper() {}

// Errorf notes what was seen instead of the behaviour, and goes on.
func (b *B) Errorf(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed = true
	b.seen = append(b.seen, fmt.Sprintf(format, args...))
}

// Fatalf notes what was seen instead of the behaviour, and ends it. Call it in the goroutine of the behaviour.
func (b *B) Fatalf(format string, args ...any) {
	b.Errorf(format, args...)
	b.over.Store(true)
	runtime.Goexit()
}

// Failed says whether the behaviour is missing.
func (b *B) Failed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed
}

// Event adds a line to the timeline that the reader sees if the behaviour is missing: an event, a key that is handed out, a
// request.
func (b *B) Event(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timeline.add(fmt.Sprintf(format, args...))
}

// Cleanup calls f at the end of the behaviour, last added first.
func (b *B) Cleanup(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cleanups = append(b.cleanups, f)
}

func (b *B) cleanup(cancel context.CancelFunc) {
	cancel()
	for {
		b.mu.Lock()
		n := len(b.cleanups)
		if n == 0 {
			b.mu.Unlock()
			return
		}
		f := b.cleanups[n-1]
		b.cleanups = b.cleanups[:n-1]
		b.mu.Unlock()
		f()
	}
}

// Go runs the reader's code in a goroutine and returns a channel that is closed when it returns. A behaviour that waits for
// it also waits for what it is about.
func (b *B) Go(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		f()
		// Not deferred: a deferred call also runs while the process dies of a panic.
		close(done)
	}()
	return done
}

// Eventually calls condition until it returns an empty string, and fails with its last text when patience has run out. What
// is never to come needs patience; what comes is not slower for it.
func (b *B) Eventually(patience time.Duration, condition func() string) {
	began := time.Now()
	for {
		text := condition()
		if text == "" {
			return
		}
		waited := time.Since(began)
		if waited > b.Patience(patience) {
			b.Fatalf("%s", text)
		}
		// Most conditions ask the API server, which shares the machine with what is waited for.
		time.Sleep(min(max(5*time.Millisecond, waited/10), 100*time.Millisecond))
	}
}

// Patience is how long to wait on this machine where another one needs d at most.
func (b *B) Patience(d time.Duration) time.Duration { return time.Duration(float64(d) * factor()) }

// factor is how much more time the machine needs: exercises-check runs many checks at once.
func factor() float64 {
	f := 1.0
	if _, err := fmt.Sscan(os.Getenv(PatienceVariable), &f); err != nil || f < 1 {
		return 1
	}
	return f
}
