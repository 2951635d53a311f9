package plugin

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// relistResult is the result of a list of the pods besides those of the informer.
type relistResult struct {
	pods *corev1.PodList
	err  error
}

// relist lists the pods when the session would otherwise end without the output of workers that have ended. An informer
// pauses for up to half a minute when its watch fails. Without the permission to watch, it has only the pods of its first
// list.
func (s *session) relist(ctx context.Context) {
	if s.relisting || !s.needsRelist() {
		return
	}
	s.relisting = true
	go func() {
		listing, done := context.WithTimeout(ctx, requestTimeout)
		defer done()
		pods, err := s.api.listPods(listing, s.goop.Name)
		select {
		case s.relists <- relistResult{pods, err}:
		case <-ctx.Done():
		}
	}()
}

func (s *session) needsRelist() bool {
	switch {
	case s.sink == nil || s.clock.Since(s.relistedAt) <= stragglers/3:
		return false
	case !s.toTheEnd:
		return s.podsForbidden
	case s.endedAt.IsZero() || s.finishedAll():
		return false
	}
	return s.podsForbidden || (s.pool.active == 0 || s.podTrouble()) && s.waited() > stragglers/3
}

// podTrouble reports whether the informer of the pods may be pausing after an error. A pod event does not show the opposite:
// the events of a list may arrive after the error of the watch that follows it.
func (s *session) podTrouble() bool {
	return !s.troubleAt.IsZero() && s.clock.Since(s.troubleAt) < maxPause
}

// onRelist processes the list. If it has no new pods, it is complete, and there is nothing left to wait for.
func (s *session) onRelist(l relistResult) {
	s.relisting, s.relistedAt = false, s.clock.Now()
	before := len(s.finished)
	if l.err == nil {
		s.podsSynced, s.podsForbidden = true, false
		for i := range l.pods.Items {
			s.observePod(&l.pods.Items[i], false)
		}
	}
	// The exit code does not depend on pods, so it is not delayed for ever if they cannot be listed.
	final := l.err == nil || apierrors.IsForbidden(l.err) || s.waited() > 3*stragglers
	s.relistFoundNothing = final && s.pool.active == 0 && len(s.finished) == before
}

func (s *session) finishedAll() bool {
	return len(s.finished) >= int(s.goop.Status.Succeeded+s.goop.Status.Failed)
}

// waited is the time since the work has ended and the last pod event has arrived.
func (s *session) waited() time.Duration { return s.clock.Since(latest(s.endedAt, s.lastPodAt)) }
