package plugin

import (
	"context"
	"slices"
	"time"
)

const (
	// maxStreams is how many logs are read at once.
	maxStreams = 32

	// maxFollowed is how many of these may be of commands that go on: those that hang must not keep the output of
	// those that are over from being shown.
	maxFollowed = 24
)

// phase is what is being done about the output of a worker.
type phase int

const (
	idle    phase = iota // nothing yet: the command has not begun, or only its end is waited for
	queued               // it is about to be read, when its turn comes
	reading              // a goroutine reads it
	resting              // it is to be looked at again in a while
	settled              // all of it was had, or never will be
)

// logReader is one pod's worker, and how far its output has been read.
type logReader struct {
	facts
	phase  phase
	until  time.Time // of resting
	atEnd  bool      // its stream ended by itself, and it rests until the kubelet has told why
	tries  int       // that failed, one after another
	lost   string    // why the log is given up
	whole  bool      // it has been read to its end
	overAt time.Time // when it was seen that it has ended, or its pod is gone

	// Of the reading that goes on.
	follow  bool
	cancel  context.CancelCauseFunc
	silence silence

	// These belong to the goroutine that reads, while one does.
	out      output
	outEnded bool
	cursor   cursor
}

// pool says whose turn it is. Each queue is first come, first served.
type pool struct {
	over, running []*logReader // whose command has ended, and whose goes on
	rest          []*logReader
	open          int // how many are read
	followed      int // how many of these are of commands that went on when it began
	active        int // how many are queued, read or resting
}

// enter puts a worker into a phase, and keeps count.
func (p *pool) enter(w *logReader, next phase) {
	counts := func(of phase) bool { return of == queued || of == reading || of == resting }
	if counts(w.phase) {
		p.active--
	}
	if counts(next) {
		p.active++
	}
	w.phase = next
}

// queue lets a worker wait for its turn.
func (p *pool) queue(w *logReader, over bool) {
	p.enter(w, queued)
	if over {
		p.over = append(p.over, w)
	} else {
		p.running = append(p.running, w)
	}
}

// hasten moves one that waits among those that go on, and has ended now. Its old entry is passed over.
func (p *pool) hasten(w *logReader) { p.over = append(p.over, w) }

// next takes the worker whose turn it is, or nil.
func (p *pool) next() *logReader {
	if p.open >= maxStreams {
		return nil
	}
	if w := first(&p.over); w != nil {
		return w
	}
	if p.followed >= maxFollowed {
		return nil
	}
	return first(&p.running)
}

// first takes the first that still waits.
func first(queue *[]*logReader) *logReader {
	for len(*queue) > 0 {
		w := (*queue)[0]
		(*queue)[0] = nil
		*queue = (*queue)[1:]
		if w.phase == queued {
			return w
		}
	}
	return nil
}

// restUntil lets a worker be for a while.
func (p *pool) restUntil(w *logReader, until time.Time) {
	p.enter(w, resting)
	w.until = until
	p.rest = append(p.rest, w)
}

// due takes those whose rest is over.
func (p *pool) due(now time.Time) []*logReader {
	var due []*logReader
	p.rest = slices.DeleteFunc(p.rest, func(w *logReader) bool {
		if w.phase == resting && now.Before(w.until) {
			return false
		}
		if w.phase == resting {
			p.enter(w, idle)
			due = append(due, w)
		}
		return true
	})
	return due
}
