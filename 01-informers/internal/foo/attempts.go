package foo

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

const (
	// FirstRetry is the time from the first rejection to the next try. It doubles with each rejection.
	FirstRetry = 5 * time.Millisecond
	// LongestRetry is the longest time between two tries.
	LongestRetry = 30 * time.Second
	// UncachedRetry is the time to the next try after a name conflict with a Deployment that the cache lacks: if the
	// cache never has it, its deletion is no event.
	UncachedRetry = time.Second
)

// Attempts counts, for each Foo and generation of its spec, how often the API server rejected its Deployment. It says
// when the next try is due and when there is none. It is safe for use by many workers.
//
// The queue's rate limiter cannot delay these tries: any event triggers a reconciliation, for instance each status of a
// Deployment during a rollout, and must not use up a try.
type Attempts struct {
	maxRetries int
	clock      clock.PassiveClock

	mu    sync.Mutex
	known map[types.NamespacedName]attempts
}

// attempts are those for one generation of a Foo.
type attempts struct {
	uid        types.UID
	generation int64
	rejections int
	last       *Failure
	due        time.Time
	// hasDesiredValues says that the Deployment has the desired values although the last try was rejected.
	hasDesiredValues bool
}

// NewAttempts returns a counter that allows a first try and maxRetries more.
func NewAttempts(maxRetries int, clock clock.PassiveClock) *Attempts {
	return &Attempts{maxRetries: maxRetries, clock: clock, known: map[types.NamespacedName]attempts{}}
}

// Retry is what follows from the attempts for one generation of a Foo.
type Retry struct {
	// Failure is the last rejection; nil if no try for the present spec was rejected.
	Failure *Failure
	// Exhausted says that there is no other try until the spec changes.
	Exhausted bool
	// Wait is the time until the next try; 0 if it is due.
	Wait time.Duration
}

// Due reports whether a try is due.
func (r Retry) Due() bool { return !r.Exhausted && r.Wait == 0 }

// Of returns when the next try for a Foo's present spec is due. After a restart it knows from the condition Stalled that
// there is none, and from Ready why: without either of them it allows another try.
func (a *Attempts) Of(f *v1alpha1.Foo) Retry {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known, ok := a.known[key(f)]; ok && known.isOf(f) {
		return a.retry(known, a.clock.Now())
	}
	delete(a.known, key(f))
	failure := reportedFailure(f)
	return Retry{Exhausted: failure != nil, Failure: failure}
}

// NoteRejected notes that a try was rejected, and returns when the next one is due.
func (a *Attempts) NoteRejected(f *v1alpha1.Foo, failure *Failure) Retry {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.known[key(f)]
	if !known.isOf(f) {
		known = attempts{uid: f.UID, generation: f.Generation}
	}
	known.rejections++
	known.last = failure
	// The clock is read once: with time between two readings, the wait could be 0, which means that an event triggers the
	// next try.
	now := a.clock.Now()
	known.due = now.Add(backoff(known.rejections))
	a.known[key(f)] = known
	return a.retry(known, now)
}

// NoteHasDesiredValues notes that the Deployment has the desired values: the status no longer reports the rejection.
func (a *Attempts) NoteHasDesiredValues(f *v1alpha1.Foo) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known, ok := a.known[key(f)]; ok && known.isOf(f) {
		known.hasDesiredValues = true
		a.known[key(f)] = known
	}
}

// NoteMissing notes that there is no Deployment. If it was as desired before, another try is due.
func (a *Attempts) NoteMissing(f *v1alpha1.Foo) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known[key(f)].hasDesiredValues {
		delete(a.known, key(f))
	}
}

// Forget drops the attempts for a Foo: its Deployment was applied, or the Foo is deleted.
func (a *Attempts) Forget(name types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.known, name)
}

func (a *Attempts) retry(known attempts, now time.Time) Retry {
	if known.rejections > a.maxRetries {
		return Retry{Failure: known.last, Exhausted: true}
	}
	return Retry{Failure: known.last, Wait: max(0, known.due.Sub(now))}
}

func (s attempts) isOf(f *v1alpha1.Foo) bool { return s.uid == f.UID && s.generation == f.Generation }

// backoff is the time to wait after the nth rejection. More than 20 doublings would overflow; 13 reach the longest time.
func backoff(n int) time.Duration { return min(FirstRetry<<min(n-1, 20), LongestRetry) }

func key(f *v1alpha1.Foo) types.NamespacedName {
	return types.NamespacedName{Namespace: f.Namespace, Name: f.Name}
}
