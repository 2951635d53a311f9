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
	if s.overAt.IsZero() && s.goop.Ended() {
		s.overAt = s.clock.Now()
		s.inTime()
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
		s.noPods = s.noPods || apierrors.IsForbidden(c.err) && !s.podsSynced
		s.notices.once(watchTrouble("the pods of the Goop", c.err))
		return
	}
	if belongsTo(c.object, s.goop) {
		s.lastPodAt = s.clock.Now()
	}
	s.learnFrom(c.object, c.deleted)
}

// learnFrom updates a worker from the state of its pod.
func (s *session) learnFrom(pod *corev1.Pod, deleted bool) {
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
		w = &logReader{silence: silence{clock: s.clock}}
		s.workers[f.pod] = w
	}
	s.learn(w, f)
}

// learn updates the facts about a worker.
func (s *session) learn(w *logReader, f facts) {
	before := w.facts
	f.gone = f.gone || before.gone
	if before.ended {
		// An ended worker stays ended: after a restart of its node the container runs again, but only repeats its record.
		if f.restarts > before.restarts && w.lost == "" {
			w.lost = "its container was restarted, and its log is lost"
		}
		f.begun, f.ended, f.record, f.instance, f.restarts = true, true, before.record, before.instance, before.restarts
	}
	ends, over := f.ended && !before.ended, f.ended || f.gone
	if over && w.overAt.IsZero() {
		w.overAt = s.clock.Now()
	}
	if ends {
		// Failures to read the log while the command ran do not count for the reading of the whole log.
		w.tries, w.brokenAt, w.lost = 0, time.Time{}, ""
	}
	w.facts = f
	switch {
	case w.phase == queued && ends:
		s.pool.hasten(w)
	case w.phase == resting && over:
		s.again(w)
	case w.phase == idle:
		s.consider(w)
	}
}

// rejectionReason returns why the operator will never run this Goop, or an empty string.
func rejectionReason(goop *v1alpha1.Goop) string {
	running := apimeta.FindStatusCondition(goop.Status.Conditions, v1alpha1.ConditionRunning)
	if running != nil && running.Reason == v1alpha1.ReasonHostAccessNotAllowed {
		return running.Message
	}
	return ""
}
