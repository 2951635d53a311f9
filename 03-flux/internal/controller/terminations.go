package controller

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// jobTerminations is what was observed of the ends of one Job's pods.
type jobTerminations struct {
	// leader is the end of rank 0.
	leader *podEnd
	// follower is the first end of another rank that did not go well.
	follower *podEnd
	// reported counts the ends that the watch has reported.
	reported int
	// late: the watch began when the Job had pods already, so what it reports first need not be the first.
	late bool
}

// note takes an end into account; nil is none. live is set if the watch reports it as it happens: a watch reports changes
// in the order in which they happened, where times are in whole seconds and of several clocks.
func (s *jobTerminations) note(end *podEnd, live bool) {
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
			s.reported++
			end.order = s.reported
		}
	// It was deleted, and ended with 0 all the same.
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

// podTerminations keeps what was observed of pods that may be deleted by now: when a Job fails, its controller deletes all
// pods that still run, rank 0 with the end of its output among them, and nothing else keeps what became of them. The pod
// watch fills it. It is in memory, and lost when the operator restarts: what is missing is LogUnavailable. Its zero value
// is ready for use.
type podTerminations struct {
	mu   sync.Mutex
	jobs map[types.NamespacedName]map[types.UID]*jobTerminations
}

// note takes a pod into account, and tells whether it is the leader that has just ended. gone is set if the pod
// is deleted, and live if this happens now and was not so before the watch began.
func (t *podTerminations) note(pod *corev1.Pod, gone, live bool) bool {
	end, owner := endOfPod(pod, gone), metav1.GetControllerOf(pod)
	if (end == nil && live) || rankOf(pod) < 0 || owner == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	setup := setupOfPod(pod)
	if t.jobs == nil {
		t.jobs = map[types.NamespacedName]map[types.UID]*jobTerminations{}
	}
	if t.jobs[setup] == nil {
		t.jobs[setup] = map[types.UID]*jobTerminations{}
	}
	known := t.jobs[setup][owner.UID]
	if known == nil {
		known = &jobTerminations{}
		t.jobs[setup][owner.UID] = known
	}
	known.late = known.late || !live
	before := known.leader
	known.note(end, live)
	return known.leader != before && known.leader.over
}

// of returns what was observed of the pods of one Job.
func (t *podTerminations) of(setup types.NamespacedName, job types.UID) jobTerminations {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.jobs[setup][job]; known != nil {
		return *known
	}
	return jobTerminations{}
}

// forget drops all that was observed of a FluxSetup's pods.
func (t *podTerminations) forget(setup types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.jobs, setup)
}
