package controller

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// jobTerminations is what was observed of the ends of one Job's pods.
type jobTerminations struct {
	// leader is the end of rank 0.
	leader *podEnd
	// follower is the first end of another rank that failed. If none failed, it is the first that was deleted and ended with 0.
	follower *podEnd
	// reported is the number of ends that the watch has reported.
	reported int
	// since is when a reconciliation first observed the end of rank 0 or of the Job. It uses the operator's clock,
	// because the clocks of the nodes and of the Job controller may differ. If that clock is set back, since starts
	// again.
	since time.Time
	// late: the Job had pods already when the watch began, so the first end that it reports need not be the first one.
	late bool
}

// note records an end, unless it is nil. live is set if the watch reports it as it happens: a watch reports changes in
// their order, while timestamps have a resolution of a second and come from several clocks.
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
		if end.rank > 0 && !end.failed() && end.deleted.IsZero() {
			return
		}
		if !end.isBefore(*known) && ((*known).failed() || !end.failed()) {
			return
		}
		if live && !s.late {
			s.reported++
			end.order = s.reported
		}
	case (*known).knows() >= end.knows():
		return
	case end.at.Before((*known).at):
		// The container had ended before the pod was deleted: the kubelet of a busy node reports that late.
		end.order, end.deleted = (*known).order, time.Time{}
	default:
		// When and why it began to end does not change any more.
		end.order, end.at, end.deleted = (*known).order, (*known).at, (*known).deleted
	}
	*known = end
}

// knows is how much is known of an end, as a rank: higher is more.
func (e *podEnd) knows() int {
	switch {
	case !e.ended:
		return 1
	case e.exitCode == nil:
		return 2
	}
	return 3
}

// isBefore reports whether one end was before another.
func (e *podEnd) isBefore(other *podEnd) bool {
	switch {
	case other == nil:
		return true
	case other.order > 0:
		// The watch has reported other first. But the kubelet of a busy node reports late, and its pod may end before another is deleted.
		return e.deleted.IsZero() && e.at.Before(other.deleted)
	case e.at.Equal(other.at):
		return e.rank < other.rank
	}
	return e.at.Before(other.at)
}

// waitLeft is how much is left of a timeout that began at since.
func (s *jobTerminations) waitLeft(now time.Time, timeout time.Duration) time.Duration {
	return s.since.Add(timeout).Sub(now)
}

// podTerminations records what was observed of pods that may no longer exist. When a Job fails, the Job controller
// deletes all running pods, including rank 0 with the end of its output, and no other object keeps their state. The
// handler of pod events fills it. It is in memory, and lost when the operator restarts: then the message has
// LogUnavailable instead of the output. Its zero value is ready to use.
type podTerminations struct {
	mu   sync.Mutex
	jobs map[types.NamespacedName]map[types.UID]*jobTerminations
}

// note records a pod, and reports whether the leader has just ended. gone is set if the pod no longer exists. live is
// set if the watch reports a change, and not a state from before it began.
func (t *podTerminations) note(pod *corev1.Pod, gone, live bool) bool {
	end, owner := endOfPod(pod, gone), metav1.GetControllerOf(pod)
	if (end == nil && live) || rankOf(pod) < 0 || owner == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.known(setupOfPod(pod), owner.UID)
	known.late = known.late || !live
	before := known.leader
	known.note(end, live)
	return known.leader != before && known.leader.ended
}

// ended records that rank 0 or the Job was observed to have ended, and returns when that was first observed.
func (t *podTerminations) ended(setup types.NamespacedName, job types.UID, now time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.known(setup, job)
	if known.since.IsZero() || now.Before(known.since) {
		known.since = now
	}
	return known.since
}

// known is what was observed of the pods of one Job. The caller may change it, and must have locked the mutex.
func (t *podTerminations) known(setup types.NamespacedName, job types.UID) *jobTerminations {
	if t.jobs == nil {
		t.jobs = map[types.NamespacedName]map[types.UID]*jobTerminations{}
	}
	if t.jobs[setup] == nil {
		t.jobs[setup] = map[types.UID]*jobTerminations{}
	}
	if t.jobs[setup][job] == nil {
		t.jobs[setup][job] = &jobTerminations{}
	}
	return t.jobs[setup][job]
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
