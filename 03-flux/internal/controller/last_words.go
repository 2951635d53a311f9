package controller

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// lastSeen is what is known of the ends of one Job's pods.
type lastSeen struct {
	// leader is the end of rank 0.
	leader *podEnd
	// follower is the first end of another rank that did not go well.
	follower *podEnd
	// told counts the ends that the watch has told.
	told int
	// late: the watch began when the Job had pods already, so what it tells first need not be the first.
	late bool
}

// note takes an end into account; nil is none. live is set if it is the watch that tells, as it happens: all
// watches tell in the order in which things happened, where the times are in whole seconds and of several clocks.
func (s *lastSeen) note(end *podEnd, live bool) {
	if end == nil {
		return
	}
	known := &s.leader
	if end.rank > 0 {
		known = &s.follower
	}
	switch {
	case *known == nil || (*known).uid != end.uid:
		if !end.failed() && end.rank > 0 || !end.isBefore(*known) {
			return
		}
		if live && !s.late {
			s.told++
			end.order = s.told
		}
	// It was told to end, and ended well.
	case end.rank > 0 && !end.failed():
		end = nil
	case (*known).knows() >= end.knows():
		return
	default:
		// How it began to end does not change any more.
		end.order, end.at, end.deleted = (*known).order, (*known).at, (*known).deleted
	}
	*known = end
}

// knows is how much is known of an end.
func (e *podEnd) knows() int {
	switch {
	case !e.over:
		return 1
	case e.exitCode == nil:
		return 2
	}
	return 3
}

// isBefore tells whether an end was before another.
func (e *podEnd) isBefore(other *podEnd) bool {
	switch {
	case other == nil:
		return true
	case other.order > 0:
		return false
	case e.at.Equal(other.at):
		return e.rank < other.rank
	}
	return e.at.Before(other.at)
}

// lastWords keeps what was seen of pods that may be gone: when a Job fails, its controller deletes all pods that
// still run, rank 0 with the end of the output among them, and nobody else tells what became of them. It is the
// pod watch that fills it. It is memory, and lost with the operator: what is missing is LogUnavailable. Its zero
// value is ready for use.
type lastWords struct {
	mu   sync.Mutex
	jobs map[types.NamespacedName]map[types.UID]*lastSeen
}

// note takes a pod into account, and tells whether it is the leader that has just ended. gone is set if the pod
// is deleted, and live if this happens now and was not so before the watch began.
func (w *lastWords) note(pod *corev1.Pod, gone, live bool) bool {
	end, owner := endOfPod(pod, gone), metav1.GetControllerOf(pod)
	if (end == nil && live) || rankOf(pod) < 0 || owner == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	setup := setupOfPod(pod)
	if w.jobs == nil {
		w.jobs = map[types.NamespacedName]map[types.UID]*lastSeen{}
	}
	if w.jobs[setup] == nil {
		w.jobs[setup] = map[types.UID]*lastSeen{}
	}
	seen := w.jobs[setup][owner.UID]
	if seen == nil {
		seen = &lastSeen{}
		w.jobs[setup][owner.UID] = seen
	}
	seen.late = seen.late || !live
	before := seen.leader
	seen.note(end, live)
	return seen.leader != before && seen.leader.over
}

// of returns what was seen of the pods of one Job.
func (w *lastWords) of(setup types.NamespacedName, job types.UID) lastSeen {
	w.mu.Lock()
	defer w.mu.Unlock()
	if seen := w.jobs[setup][job]; seen != nil {
		return *seen
	}
	return lastSeen{}
}

// forget drops all that was seen of a FluxSetup's pods.
func (w *lastWords) forget(setup types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.jobs, setup)
}
