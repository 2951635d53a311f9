package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// endWithin is how long after the end of a stream the kubelet may take to report that the container has terminated. If
	// that does not happen, the stream broke off and is opened again.
	endWithin = 3 * time.Second

	// maxTries is how often the log of an ended command is requested. Requests without a response do not count.
	maxTries = 4
)

// maxOutage is how long the log of an ended command is requested while there is no response. It is a variable so that
// tests can shorten it.
var maxOutage = time.Minute

// job is the task of a reader, with the facts at its beginning.
type job struct {
	facts
	follow bool
	lost   string
}

// delivery is the result of a job.
type delivery struct {
	worker  *workerState
	job     job
	settled bool
	rotated bool // the kubelet has rotated a part of the log away
	more    bool // of the log was read than before
	err     error
}

// dispatch starts readers for the workers whose turn it is.
func (s *session) dispatch(ctx context.Context) {
	for w := s.pool.next(); w != nil; w = s.pool.next() {
		j := job{facts: w.facts, lost: w.lost, follow: s.toTheEnd && !w.ended && !w.gone && w.lost == ""}
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

// deliver writes the log, or its replacement, to the sink.
func (s *session) deliver(ctx context.Context, w *workerState, j job) delivery {
	d := delivery{worker: w, job: j}
	if w.out == nil {
		w.out = s.sink.open(j.place)
	}
	switch {
	case j.lost != "":
	case !j.gone:
		if w.cursor.instance != j.instance {
			if d.err = s.changeInstance(w, j); d.err != nil {
				return d
			}
		}
		before := w.cursor.read
		d.rotated, d.err = s.api.readLog(ctx, j, &w.cursor, w.out, &w.silence)
		d.more = w.cursor.read != before
		if d.err != nil || j.follow {
			return d
		}
	case j.record == nil || !w.cursor.any() || w.cursor.lacks(j.record):
		j.lost = "its pod was deleted"
	}
	d.err = w.out.end(result{place: j.place, record: j.record, lost: j.lost, partial: w.cursor.any(), rest: w.cursor.rest(j.record)})
	d.settled, w.outEnded, w.cursor.end = true, true, nil
	return d
}

// changeInstance starts to read the log of another container. Its output is separated from that of an earlier container.
func (s *session) changeInstance(w *workerState, j job) error {
	if w.cursor.any() || j.restarts > 0 {
		s.notices.once(s.names.of(j.place) + ": its container was restarted; what it wrote before that may be missing")
	}
	before := w.cursor
	w.cursor = cursor{instance: j.instance, before: before.any()}
	if !before.inLine {
		return nil
	}
	_, err := w.out.Write([]byte("\n"))
	return err
}

// onDelivery decides what comes next for a worker. An error ends the session, because the output cannot be written.
func (s *session) onDelivery(d delivery) error {
	w := d.worker
	s.pool.open--
	if d.job.follow {
		s.pool.followed--
	}
	if d.rotated {
		s.notices.once(s.names.of(w.place) + ": its node has rotated its log; some output may be missing")
	}
	if d.more {
		w.brokenAt = time.Time{}
	}
	var unwritten outputError
	switch {
	case errors.As(d.err, &unwritten):
		return d.err
	case d.settled:
		s.pool.enter(w, settled)
		if w.ended {
			s.delivered[w.place] = true
		}
		// A partial output does not end the session, but any other error of the sink does.
		return d.err
	case d.err != nil:
		s.onTrouble(w, d.err)
	case w.ended, w.gone, w.lost != "":
		// The rest is read without following the log. If the stream was not cut, there is no rest.
		s.requeue(w)
	default:
		w.tries, w.brokenAt = 0, time.Time{}
		s.pool.restUntil(w, s.clock.Now().Add(endWithin))
	}
	return nil
}

// onTrouble handles an error while a log is read.
func (s *session) onTrouble(w *workerState, err error) {
	now := s.clock.Now()
	var broken connectionError
	outage := errors.As(err, &broken)
	// A missing permission is not transient: the log of a running worker is not requested again and again.
	lasts := s.toTheEnd && !w.ended && !apierrors.IsForbidden(err)
	w.count(err, now, outage, lasts)
	switch {
	case w.gone || w.lost != "":
		s.requeue(w)
	case outage && !lasts && now.Sub(w.brokenAt) < maxOutage:
		s.pool.restUntil(w, now.Add(min(max(now.Sub(w.brokenAt), time.Second), maxTries*time.Second)))
	case lasts || !outage && w.tries < maxTries:
		if w.tries == 2 && lasts {
			s.notices.once(fmt.Sprintf("%s: reading its log fails, and is tried again: %v", s.names.of(w.place), err))
		}
		s.pool.restUntil(w, now.Add(time.Duration(min(w.tries, maxTries))*time.Second))
	default:
		w.lost = err.Error()
		s.requeue(w)
	}
}

// count counts a failed try. During an outage tries do not count, unless the worker is still running: then only the time
// is limited.
func (w *workerState) count(err error, now time.Time, outage, lasts bool) {
	switch {
	case !outage:
		w.brokenAt = time.Time{}
	case w.brokenAt.IsZero():
		w.brokenAt = now
	}
	if !outage || lasts {
		w.tries++
	}
	if errors.Is(err, errSilent) {
		// Each such try takes maxSilence, so only one more is left.
		w.tries = max(w.tries, maxTries-1)
	}
}

// requeue makes a worker idle, and queues it again if there is anything to read.
func (s *session) requeue(w *workerState) {
	s.pool.enter(w, idle)
	s.queueIfReadable(w)
}

// queueIfReadable queues a worker if there is anything to read or to report. With toTheEnd, a worker whose log was given up
// while it was running is queued again only after its end: then the log is tried once more (see update).
func (s *session) queueIfReadable(w *workerState) {
	given := w.gone || w.cut
	switch {
	case given && !w.ended && w.out == nil:
		s.pool.enter(w, settled)
	case w.ended, given, w.begun && !s.toTheEnd:
		s.pool.queue(w, true)
	case w.begun && s.live && w.lost == "":
		s.pool.queue(w, false)
	}
}

// cutOff gives up workers that are still running after the Goop has ended: a node that is not ready may never end its
// pods.
func (s *session) cutOff() {
	for _, w := range s.workers {
		if w.ended || w.lost != "" || w.phase == settled || w.phase == idle {
			continue
		}
		w.cut, w.lost = true, "the Goop ended before this worker did"
		switch w.phase {
		case reading:
			w.cancel(nil)
		case resting:
			s.requeue(w)
		}
	}
}
