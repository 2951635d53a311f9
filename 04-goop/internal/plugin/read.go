package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// endWithin is how long after the end of a stream the kubelet may take to tell that the container has ended.
	// A stream that ends without that broke off, and is opened again.
	endWithin = 3 * time.Second

	// maxTries is how often the log of a command that is over is asked for.
	maxTries = 4
)

// job is what a reader is to do, as things were when it began.
type job struct {
	facts
	follow bool
	whole  bool
	lost   string
}

// delivery is what came of it.
type delivery struct {
	worker    *logReader
	job       job
	settled   bool
	begunAnew bool
	err       error
}

// dispatch lets workers be read whose turn it is.
func (s *session) dispatch(ctx context.Context) {
	for w := s.pool.next(); w != nil; w = s.pool.next() {
		j := job{facts: w.facts, whole: w.whole, lost: w.lost, follow: s.toTheEnd && !w.ended && !w.gone && w.lost == ""}
		s.pool.enter(w, reading)
		s.pool.open++
		if j.follow {
			s.pool.followed++
		}
		reading, cancel := context.WithCancelCause(ctx)
		w.follow, w.cancel = j.follow, cancel
		s.readers.Go(func() {
			d := s.deliver(reading, w, j)
			cancel(nil)
			select {
			case s.deliveries <- d:
			case <-ctx.Done():
			}
		})
	}
}

// deliver hands the log, or what there is instead, to the sink.
func (s *session) deliver(ctx context.Context, w *logReader, j job) delivery {
	d := delivery{worker: w, job: j}
	if w.out == nil {
		w.out = s.sink.open(j.place)
	}
	if !j.whole && !j.gone && j.lost == "" {
		if w.cursor.instance != j.instance {
			w.cursor = cursor{instance: j.instance, before: w.cursor.any()}
		}
		d.begunAnew, d.err = s.api.readLog(ctx, j, &w.cursor, w.out, &w.silence)
		if d.err != nil || j.follow {
			return d
		}
	} else if !j.whole && j.lost == "" {
		j.lost = "its pod is gone"
	}
	if j.whole {
		j.lost = ""
	}
	d.err = w.out.end(result{place: j.place, record: j.record, lost: j.lost, partial: w.cursor.any()})
	d.settled, w.outEnded = true, true
	return d
}

// onDelivery decides what comes next for a worker. Its error ends the session: nobody takes the output.
func (s *session) onDelivery(d delivery) error {
	w := d.worker
	s.pool.open--
	if d.job.follow {
		s.pool.followed--
	}
	if d.begunAnew {
		s.notices.once(s.names.of(w.place) + ": its node has put a part of its log away; some output may be missing")
	}
	var unwritten outputError
	switch {
	case errors.As(d.err, &unwritten):
		return d.err
	case d.settled:
		s.pool.enter(w, settled)
		s.delivered[w.place] = s.delivered[w.place] || w.ended
		// Half an output is no reason to end; a sink that fails otherwise is.
		return d.err
	case d.err != nil:
		s.onTrouble(w, d.err)
	case w.ended && w.instance == w.cursor.instance:
		w.whole = true
		s.again(w)
	default:
		w.tries, w.atEnd = 0, true
		s.pool.restUntil(w, s.clock.Now().Add(endWithin))
	}
	return nil
}

// onTrouble deals with a log that cannot be had, or no more of it.
func (s *session) onTrouble(w *logReader, err error) {
	w.tries++
	if errors.Is(err, errSilent) {
		// Each such try takes maxSilence: there is one more.
		w.tries = max(w.tries, maxTries-1)
	}
	w.atEnd = false
	lasts := s.toTheEnd && !w.ended
	switch {
	case apierrors.IsNotFound(err):
		w.gone = true
		s.again(w)
	case apierrors.IsForbidden(err):
		w.lost = err.Error()
		s.again(w)
	case w.gone || w.lost != "":
		s.again(w)
	case lasts || w.tries < maxTries:
		if w.tries == 2 && lasts {
			s.notices.once(fmt.Sprintf("%s: reading its log fails, and is tried again: %v", s.names.of(w.place), err))
		}
		s.pool.restUntil(w, s.clock.Now().Add(time.Duration(min(w.tries, maxTries))*time.Second))
	default:
		w.lost = err.Error()
		s.again(w)
	}
}

// again considers a worker anew.
func (s *session) again(w *logReader) {
	s.pool.enter(w, idle)
	s.consider(w)
}

// consider lets a worker wait for its turn if there is anything to be had of it.
func (s *session) consider(w *logReader) {
	given := w.gone || w.lost != ""
	switch {
	case given && !w.ended && w.out == nil:
		s.pool.enter(w, settled)
	case w.ended, given, w.begun && !s.toTheEnd:
		s.pool.queue(w, true)
	case w.begun && s.live:
		s.pool.queue(w, false)
	}
}

// cutOff gives up what goes on though the Goop is over: nobody knows when a node that is not ready ends its pods.
func (s *session) cutOff() {
	for _, w := range s.workers {
		if w.ended || w.lost != "" || w.phase == settled || w.phase == idle {
			continue
		}
		w.lost = "the work was over before this worker was"
		switch w.phase {
		case reading:
			w.cancel(nil)
		case resting:
			s.again(w)
		}
	}
}
