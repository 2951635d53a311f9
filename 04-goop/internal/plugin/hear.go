package plugin

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// onGoop takes note of the Goop. Its error ends the session.
func (s *session) onGoop(c change[*v1alpha1.Goop]) error {
	if c.err != nil {
		if apierrors.IsForbidden(c.err) || apierrors.IsNotFound(c.err) {
			return explained(c.err)
		}
		s.notices.once(watchTrouble("the Goop", c.err))
		return nil
	}
	s.heard = true
	if c.object.UID != s.goop.UID {
		s.deleted = true
		return nil
	}
	s.goop = c.object
	s.progress.status.Store(&c.object.Status)
	if s.overAt.IsZero() && s.goop.Ended() {
		s.overAt = s.clock.Now()
	}
	s.deleted = s.deleted || c.deleted || s.goop.DeletionTimestamp != nil
	s.tell()
	return nil
}

// tell says, in the operator's words, what keeps the work from going on. It is said once. Of a Goop that is being deleted
// the condition says how its cleanup goes, and the session says that it is deleted.
func (s *session) tell() {
	running := apimeta.FindStatusCondition(s.goop.Status.Conditions, v1alpha1.ConditionRunning)
	if running == nil || s.goop.Ended() || s.goop.DeletionTimestamp != nil {
		return
	}
	switch running.Reason {
	case v1alpha1.ReasonWorking, v1alpha1.ReasonFinished, v1alpha1.ReasonHostAccessRefused:
	default:
		s.notices.once(running.Reason + ": " + running.Message)
	}
}

// onPod takes note of a pod, and lets its log be read when there is something to be had.
func (s *session) onPod(c change[*corev1.Pod]) {
	if c.err != nil {
		s.noPods = s.noPods || apierrors.IsForbidden(c.err)
		s.notices.once(watchTrouble("the pods of the Goop", c.err))
		return
	}
	if !belongsTo(c.object, s.goop) {
		return
	}
	s.lastPodAt = s.clock.Now()
	f, ok := factsOf(c.object)
	if !ok {
		return
	}
	f.gone = c.deleted
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

// learn takes note of what is new of a worker.
func (s *session) learn(w *logReader, f facts) {
	before := w.facts
	if before.ended {
		// It stays so: after a restart of its node the container is run again, and only repeats its record.
		f.begun, f.ended, f.record, f.instance = true, true, before.record, before.instance
	}
	if (f.ended || f.gone) && w.overAt.IsZero() {
		w.overAt = s.clock.Now()
	}
	w.facts = f
	switch {
	case w.phase == queued && f.ended && !before.ended:
		s.pool.hasten(w)
	case w.phase == resting && (f.ended || f.gone):
		// A stream that ended by itself shortly before was read to its end.
		w.whole = w.whole || w.atEnd && f.ended && f.instance == w.cursor.instance
		s.again(w)
	case w.phase == idle:
		s.consider(w)
	}
}

// refusal is why the operator will never run this Goop, or empty.
func refusal(goop *v1alpha1.Goop) string {
	running := apimeta.FindStatusCondition(goop.Status.Conditions, v1alpha1.ConditionRunning)
	if running != nil && running.Reason == v1alpha1.ReasonHostAccessRefused {
		return running.Message
	}
	return ""
}
