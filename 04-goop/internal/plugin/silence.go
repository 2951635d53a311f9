package plugin

import (
	"errors"
	"io"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// maxSilence is how long a log stream that has an end may bring nothing. A connection that was lost without an error, for
// example at a proxy, never brings anything. It is a variable so that tests can shorten it.
var maxSilence = 10 * time.Second

var errSilent = errors.New("its log stream brings nothing more and does not end")

// silence is the time since which a stream has brought nothing. The time in which its output is written does not count,
// because the reader of the output may pause. One goroutine sets it, and another reads it.
type silence struct {
	clock clock.PassiveClock
	since atomic.Pointer[time.Time] // nil: no read is in progress
}

func (s *silence) begin() { s.since.Store(new(s.clock.Now())) }

func (s *silence) end() { s.since.Store(nil) }

// lasts returns how long the silence has lasted.
func (s *silence) lasts() time.Duration {
	if since := s.since.Load(); since != nil {
		return s.clock.Since(*since)
	}
	return 0
}

// awaited is a stream whose silence is measured.
type awaited struct {
	stream  io.Reader
	silence *silence
}

func (a *awaited) Read(piece []byte) (int, error) {
	a.silence.begin()
	defer a.silence.end()
	return a.stream.Read(piece)
}

// breakOffSilent ends the reading of silent streams whose logs have an end, because their workers have ended or are not
// followed.
func (s *session) breakOffSilent() {
	for _, w := range s.workers {
		endless := w.follow && !w.ended && !w.gone
		if w.phase == reading && !endless && min(w.silence.lasts(), s.clock.Since(w.doneAt)) > maxSilence {
			w.cancel(errSilent)
		}
	}
}
