package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// skews remembers how far our clock is behind the times that objects record. Its zero value is ready for use.
type skews struct {
	mu     sync.Mutex
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
func (s *skews) now(object types.NamespacedName, ours, recorded time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	clock := s.clocks[object]
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
	if s.clocks == nil {
		s.clocks = map[types.NamespacedName]lag{}
	}
	s.clocks[object] = clock
	return now
}

// since is when we first read the latest time that an object has recorded; zero if it has recorded none. Where that lies in
// the past, the clock of the replica that recorded it may be behind ours: what is waited for after it is counted from here.
func (s *skews) since(object types.NamespacedName) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clocks[object].read
}

// forget is called when the object is gone.
func (s *skews) forget(object types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clocks, object)
}
