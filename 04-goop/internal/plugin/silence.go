package plugin

import (
	"errors"
	"io"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// maxSilence is how long the stream of a log that has an end may bring nothing. A connection that was lost without a
// word, at a proxy say, brings nothing for ever. It is a variable so that tests need not wait as long.
var maxSilence = 10 * time.Second

var errSilent = errors.New("its log stream brings nothing more and does not end")

// silence is since when a stream has brought nothing. The time in which what it brought is written is not the
// stream's: whoever reads the output may pause. One goroutine sets it, another looks.
type silence struct {
	clock clock.PassiveClock
	since atomic.Pointer[time.Time] // nil: nothing is awaited
}

func (s *silence) begin() { s.since.Store(new(s.clock.Now())) }

func (s *silence) end() { s.since.Store(nil) }

// lasts says how long it has lasted.
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

// breakOffSilent ends the reading of logs that have an end, as their workers are over or are not followed, and whose
// streams bring nothing.
func (s *session) breakOffSilent() {
	for _, w := range s.workers {
		endless := w.follow && !w.ended && !w.gone
		if w.phase == reading && !endless && min(w.silence.lasts(), s.clock.Since(w.overAt)) > maxSilence {
			w.cancel(errSilent)
		}
	}
}
