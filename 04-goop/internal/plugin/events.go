package plugin

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// onGoop processes an event of the Goop. An error ends the session.
func (s *session) onGoop(c change[*v1alpha1.Goop]) error {
	if c.err != nil {
		// Once the Goop was observed, such an error may be transient: an authorizer that does not respond denies requests for
		// a moment.
		if !s.observed && (apierrors.IsForbidden(c.err) || apierrors.IsNotFound(c.err)) {
			return explained(c.err)
		}
		s.notices.once(watchTrouble("the Goop", c.err))
		return nil
	}
	s.observed = true
	if c.object.UID != s.goop.UID {
		s.deleted = true
		return nil
	}
	s.goop = c.object
	s.progress.status.Store(&c.object.Status)
	if s.endedAt.IsZero() && s.goop.Ended() {
		s.endedAt = s.clock.Now()
		s.stopTimeout()
	}
	// A Goop that is being deleted produces no more output, but the existing output can be read.
	s.deleted = s.deleted || c.deleted || (s.toTheEnd && s.goop.DeletionTimestamp != nil)
	s.reportObstacle()
	return nil
}

// reportObstacle prints the reason and the message of the condition Running if something keeps the work from continuing.
// Each is printed once. For a Goop that is being deleted the condition is about its cleanup, and the session reports the
// deletion.
func (s *session) reportObstacle() {
	running := apimeta.FindStatusCondition(s.goop.Status.Conditions, v1alpha1.ConditionRunning)
	if running == nil || s.goop.Ended() || s.goop.DeletionTimestamp != nil {
		return
	}
	switch running.Reason {
	case v1alpha1.ReasonWorking, v1alpha1.ReasonFinished, v1alpha1.ReasonHostAccessNotAllowed:
	default:
		s.notices.once(running.Reason + ": " + running.Message)
	}
}

// onPod processes an event of a pod, and queues the worker if its log can be read.
func (s *session) onPod(c change[*corev1.Pod]) {
	if c.err != nil {
		s.troubleAt = s.clock.Now()
		s.podsForbidden = s.podsForbidden || apierrors.IsForbidden(c.err) && !s.podsSynced
		s.notices.once(watchTrouble("the pods of the Goop", c.err))
		return
	}
	if belongsTo(c.object, s.goop) {
		s.lastPodAt = s.clock.Now()
	}
	s.observePod(c.object, c.deleted)
}

// observePod updates the state of a worker from its pod.
func (s *session) observePod(pod *corev1.Pod, deleted bool) {
	f, ok := factsOf(pod)
	if !ok || !belongsTo(pod, s.goop) {
		return
	}
	f.gone = deleted
	if f.round > 0 {
		s.names.several.Store(true)
	}
	if f.ended {
		s.finished[f.place] = true
	}
	w := s.workers[f.pod]
	if w == nil {
		w = &workerState{silence: silence{clock: s.clock}}
		s.workers[f.pod] = w
	}
	s.update(w, f)
}

// update replaces the facts about a worker, and queues it if its log can be read now.
func (s *session) update(w *workerState, f facts) {
	before := w.facts
	f.gone = f.gone || before.gone
	if before.ended {
		// An ended worker stays ended: after a restart of its node the container runs again, but only repeats its record.
		if f.restarts > before.restarts && w.lost == "" {
			w.lost = "its container was restarted, and its log is lost"
		}
		f.begun, f.ended, f.record, f.instance, f.restarts = true, true, before.record, before.instance, before.restarts
	}
	justEnded, done := f.ended && !before.ended, f.ended || f.gone
	if done && w.doneAt.IsZero() {
		w.doneAt = s.clock.Now()
	}
	if justEnded {
		// From now on the log is read to its end. Tries are counted from 0 again, also if the log was given up before.
		w.tries, w.brokenAt, w.lost = 0, time.Time{}, ""
	}
	w.facts = f
	switch {
	case w.phase == queued && justEnded:
		s.pool.prioritize(w)
	case w.phase == resting && done:
		s.requeue(w)
	case w.phase == idle:
		s.queueIfReadable(w)
	}
}

// rejectionMessage returns the message that says why the operator will never run this Goop, or an empty string.
func rejectionMessage(goop *v1alpha1.Goop) string {
	running := apimeta.FindStatusCondition(goop.Status.Conditions, v1alpha1.ConditionRunning)
	if running != nil && running.Reason == v1alpha1.ReasonHostAccessNotAllowed {
		return running.Message
	}
	return ""
}
