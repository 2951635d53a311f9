package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// readinessPace is how often, at most, a status is written for readiness alone. A thousand pods become ready in
// as many steps, and no user reads each of them.
const readinessPace = time.Second

// podsPatience is how long the Job controller may take to create the pods of a Job. It takes less than a second, unless
// something rejects them.
const podsPatience = 15 * time.Second

// pace remembers when the statuses of objects were last written, and how far our clock is behind what they record. Its
// zero value is ready for use.
type pace struct {
	mu     sync.Mutex
	last   map[types.NamespacedName]time.Time
	clocks map[types.NamespacedName]lag
}

// lag is the latest time that an object has recorded, when that was first read, and how far our clock was behind it then.
type lag struct {
	latest, read time.Time
	behind       time.Duration
}

// now is the time for an object, by our clock and by a time that it has recorded: when its attempt was launched, or its Job
// started. Where that lies in the future, the clock of the replica that recorded it is ahead of ours, and the difference is
// added as long as it does: what is waited for after it is counted from when we first read of it. A wait that is longer than
// the difference takes longer by that: it is not added any more then. A clock of ours that is set back, and corrected,
// shortens nothing.
func (p *pace) now(object types.NamespacedName, ours, recorded time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	clock := p.clocks[object]
	later := recorded.After(clock.latest)
	if later {
		clock.latest = recorded
	}
	if ahead := clock.latest.Sub(ours); ahead > 0 {
		clock.behind = max(clock.behind, ahead)
	} else {
		clock.behind = 0
	}
	now := ours.Add(clock.behind)
	if later {
		clock.read = now
	}
	if p.clocks == nil {
		p.clocks = map[types.NamespacedName]lag{}
	}
	p.clocks[object] = clock
	return now
}

// since is when we first read the latest time that an object has recorded; zero if it has recorded none. Where that lies in
// the past, the clock of the replica that recorded it may be behind ours: what is waited for after it is counted from here.
func (p *pace) since(object types.NamespacedName) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clocks[object].read
}

// wait is how long a write for readiness alone has to wait: 0 if it may be done now. What else changes in a
// status never waits.
func (p *pace) wait(object types.NamespacedName, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.last[object]
	if !ok || now.Before(last) {
		return 0
	}
	return max(0, readinessPace-now.Sub(last))
}

// wrote is called after each write of a status.
func (p *pace) wrote(object types.NamespacedName, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[types.NamespacedName]time.Time{}
	}
	p.last[object] = now
}

// forget is called when the object is gone.
func (p *pace) forget(object types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, object)
	delete(p.clocks, object)
}

// soonest is the shorter of two waits, of which 0 is none.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
