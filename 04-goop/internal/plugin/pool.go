package plugin

import (
	"context"
	"slices"
	"time"
)

const (
	// maxStreams is how many logs are read at the same time.
	maxStreams = 32

	// maxFollowed is how many of these may be logs of running commands, so that commands that hang do not delay the output
	// of ended ones.
	maxFollowed = 24
)

// phase is the state of the reading of a worker's output.
type phase int

const (
	idle    phase = iota // the command has not begun, or the session waits only for its end
	queued               // waits for its turn to be read
	reading              // a goroutine reads it
	resting              // waits for a time, or for its end, before it is queued again
	settled              // everything was read, or is given up
)

// workerState is the worker of one pod, and how far its output has been read.
type workerState struct {
	facts
	phase    phase
	until    time.Time // of resting
	tries    int       // consecutive failures
	brokenAt time.Time // since when its connections break off and bring nothing; zero: the last one succeeded, or brought more
	lost     string    // why the log is given up
	cut      bool      // the session does not wait for its end either
	doneAt   time.Time // when its end, or the deletion of its pod, was observed

	// The current reading.
	follow  bool
	cancel  context.CancelCauseFunc
	silence silence

	// Only the goroutine that reads uses these, while there is one.
	out      output
	outEnded bool
	cursor   cursor
}

// pool decides which worker is next. Each queue is first in, first out.
type pool struct {
	// ahead are workers that have ended, are gone or are not followed; of the others the command is running.
	ahead, running []*workerState
	rest           []*workerState
	open           int // how many are being read
	followed       int // how many of these were running commands when the reading began
	active         int // how many are queued, being read or resting
}

// enter moves a worker to a phase, and updates the counts.
func (p *pool) enter(w *workerState, next phase) {
	counts := func(one phase) bool { return one == queued || one == reading || one == resting }
	if counts(w.phase) {
		p.active--
	}
	if counts(next) {
		p.active++
	}
	w.phase = next
}

// queue adds a worker to the end of a queue.
func (p *pool) queue(w *workerState, ahead bool) {
	p.enter(w, queued)
	if ahead {
		p.ahead = append(p.ahead, w)
	} else {
		p.running = append(p.running, w)
	}
}

// prioritize moves a worker whose command has just ended to the other queue. Its old entry is skipped later.
func (p *pool) prioritize(w *workerState) { p.ahead = append(p.ahead, w) }

// next returns the next worker, or nil.
func (p *pool) next() *workerState {
	if p.open >= maxStreams {
		return nil
	}
	if w := first(&p.ahead); w != nil {
		return w
	}
	if p.followed >= maxFollowed {
		return nil
	}
	return first(&p.running)
}

// first returns the first worker that is still queued.
func first(queue *[]*workerState) *workerState {
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

// restUntil lets a worker wait until a time.
func (p *pool) restUntil(w *workerState, until time.Time) {
	p.enter(w, resting)
	w.until = until
	p.rest = append(p.rest, w)
}

// due returns the workers whose waiting time has expired.
func (p *pool) due(now time.Time) []*workerState {
	var due []*workerState
	p.rest = slices.DeleteFunc(p.rest, func(w *workerState) bool {
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
