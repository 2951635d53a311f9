package foo

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

const (
	// FirstRetry is the time from the first refusal to the next try; it doubles with each.
	FirstRetry = 5 * time.Millisecond
	// LongestRetry is the longest time between two tries.
	LongestRetry = 30 * time.Second
)

// Attempts counts, for each Foo and generation of its spec, how often the API server refused its
// Deployment, and says when to try again and when to give up. It is safe for use by many workers.
//
// It is not the queue's rate limiter that paces these tries: anything may wake a Foo, each status of a
// rolling Deployment for one, and no such pass may use up a try before its time.
type Attempts struct {
	max   int
	clock clock.PassiveClock

	mu    sync.Mutex
	known map[types.NamespacedName]attempt
}

type attempt struct {
	uid        types.UID
	generation int64
	refused    int
	last       *Refusal
	next       time.Time
}

// NewAttempts returns a counter that gives up when the first try and max more were refused.
func NewAttempts(maxRetries int, clock clock.PassiveClock) *Attempts {
	return &Attempts{max: maxRetries, clock: clock, known: map[types.NamespacedName]attempt{}}
}

// Verdict is what the tries for one generation of a Foo amount to.
type Verdict struct {
	// Refused is the last refusal; nil if the present spec has not been refused.
	Refused *Refusal
	// GaveUp says that nothing more is to be tried until the spec changes.
	GaveUp bool
	// Wait is how long to wait before the next try; 0 if it is due.
	Wait time.Duration
}

// MayTry tells whether a try is due.
func (v Verdict) MayTry() bool { return !v.GaveUp && v.Wait == 0 }

// Of returns the verdict on a Foo's present spec. That a controller gave up before a restart, it knows
// from the Foo's condition Stalled.
func (a *Attempts) Of(f *v1alpha1.Foo) Verdict {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen, ok := a.known[key(f)]
	if ok && seen.isOf(f) {
		return a.verdict(seen, a.clock.Now())
	}
	delete(a.known, key(f))
	return Verdict{GaveUp: Stalled(f), Refused: reported(f)}
}

// Refuse notes that a try was refused, and returns the new verdict.
func (a *Attempts) Refuse(f *v1alpha1.Foo, refusal *Refusal) Verdict {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen, ok := a.known[key(f)]
	if !ok || !seen.isOf(f) {
		seen = attempt{uid: f.UID, generation: f.Generation}
	}
	seen.refused++
	seen.last = refusal
	// One reading of the clock for both: were there time between two of them, the wait could come out as 0, as if an
	// event would announce the next try.
	now := a.clock.Now()
	seen.next = now.Add(pause(seen.refused))
	a.known[key(f)] = seen
	return a.verdict(seen, now)
}

// Forget drops what is known of a Foo: its Deployment is as wanted, or the Foo is gone.
func (a *Attempts) Forget(name types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.known, name)
}

func (a *Attempts) verdict(seen attempt, now time.Time) Verdict {
	if seen.refused > a.max {
		return Verdict{Refused: seen.last, GaveUp: true}
	}
	return Verdict{Refused: seen.last, Wait: max(0, seen.next.Sub(now))}
}

func (s attempt) isOf(f *v1alpha1.Foo) bool { return s.uid == f.UID && s.generation == f.Generation }

// pause is the time to wait after the nth refusal.
func pause(n int) time.Duration {
	// Beyond 13 doublings it is the longest anyway, and far beyond them it would overflow.
	return min(FirstRetry<<min(n-1, 20), LongestRetry)
}

func key(f *v1alpha1.Foo) types.NamespacedName {
	return types.NamespacedName{Namespace: f.Namespace, Name: f.Name}
}
