package controller

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// signalled is the base of exit codes that stand for a signal.
const signalled = 128

// podEnd is how a broker's pod ended, or that it is terminating.
type podEnd struct {
	pod  string
	uid  types.UID
	rank int32

	// order is its place among the ends that the watch has reported, from 1; 0 if the watch did not report it.
	order int
	// at is when it ended or was deleted, whichever came first.
	at time.Time
	// deleted is when its deletion was requested; zero if there was no such request before it ended.
	deleted time.Time

	// ended: the end is final. Otherwise the container may still run.
	ended bool
	// exitCode is nil if the kubelet did not report one.
	exitCode *int32
	// unstarted: the container never ran.
	unstarted bool
	// cause is a reason from the kubelet, such as OOMKilled or Evicted, and detail its message. output is the end of the
	// container's output.
	cause, detail, output string
}

// endOfPod reads the end from a pod: nil if the pod has not ended and is not being deleted. gone is set if the watch
// has reported its deletion: then the end is final. The deletion event alone is not an end, because the watch also
// reports it for a pod that loses our label. A pod that is really deleted has a deletionTimestamp first, because the
// Job controller's finalizer keeps it.
func endOfPod(pod *corev1.Pod, gone bool) *podEnd {
	end := podEnd{pod: pod.Name, uid: pod.UID, rank: rankOf(pod)}
	var finished time.Time
	if status := brokerStatus(pod); status != nil && status.State.Terminated != nil {
		finished = status.State.Terminated.FinishedAt.Time
		end.read(status.State.Terminated)
	}
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		end.ended = true
		end.cause = cmp.Or(pod.Status.Reason, end.cause)
		end.detail = cmp.Or(strings.TrimSpace(pod.Status.Message), end.detail)
		// The kubelet rejects or evicts a pod as a whole, without a status of the container.
		end.unstarted = end.unstarted || (brokerStatus(pod) == nil && pod.Status.Reason != "Evicted")
	}
	if finished.Unix() <= 0 {
		finished = lastTransition(pod)
	}
	if pod.DeletionTimestamp == nil && !end.ended {
		return nil
	}
	end.ended = end.ended || gone
	end.date(pod, finished)
	return &end
}

// date sets when the end began, and whether the deletion caused it.
func (e *podEnd) date(pod *corev1.Pod, finished time.Time) {
	if pod.DeletionTimestamp == nil {
		e.at = finished
		return
	}
	grace := ptr.Deref(pod.DeletionGracePeriodSeconds, 0)
	e.deleted = pod.DeletionTimestamp.Add(-time.Duration(grace) * time.Second)
	switch {
	case e.exitCode == nil || !finished.Before(e.deleted):
		e.at = e.deleted
	case grace == 0 && *e.exitCode >= signalled:
		// The kubelet is done with the pod and has set the grace period to 0, which changes deletionTimestamp: the
		// deletion was requested when the pod ended, or before.
		e.at, e.deleted = finished, finished
	default:
		e.at, e.deleted = finished, time.Time{}
	}
}

// read copies the terminated state of the container.
func (e *podEnd) read(terminated *corev1.ContainerStateTerminated) {
	e.ended, e.exitCode = true, new(terminated.ExitCode)
	e.cause, e.output = terminated.Reason, strings.TrimSpace(terminated.Message)
	switch terminated.Reason {
	case "Error", "Completed":
		e.cause = ""
	case "StartError", "ContainerCannotRun":
		// A container that never ran has no output: the message comes from the runtime.
		e.unstarted, e.detail, e.output = true, e.output, ""
	case "ContainerStatusUnknown":
		// The kubelet has lost the container, and sets an exit code of its own.
		e.exitCode, e.detail, e.output = nil, e.output, ""
	case "Unknown":
		// The runtime lost the container when its node restarted, and sets an exit code of its own: 255 (containerd,
		// internal/cri/server/helpers.go). The output that the kubelet has kept is the container's.
		e.exitCode = nil
	}
}

// lastTransition is the last time at which one of the pod's conditions changed.
func lastTransition(pod *corev1.Pod) time.Time {
	last := pod.CreationTimestamp.Time
	for _, condition := range pod.Status.Conditions {
		if condition.LastTransitionTime.After(last) {
			last = condition.LastTransitionTime.Time
		}
	}
	return last
}

// succeeded reports whether the broker has ended with 0. e may be nil.
func (e *podEnd) succeeded() bool {
	return e != nil && e.ended && !e.failed()
}

// failed reports whether the broker did not end with 0.
func (e *podEnd) failed() bool {
	return e.exitCode == nil || *e.exitCode != 0
}

// outlived reports whether another container still runs in the pod whose broker has ended.
func outlived(end *podEnd, pods []corev1.Pod) bool {
	for i := range pods {
		if pods[i].UID == end.uid {
			return slices.ContainsFunc(pods[i].Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
				return status.State.Terminated == nil
			})
		}
	}
	return false
}

// endedLike reports whether both ended by themselves with the same exit code. An exit code for a signal has a cause
// outside of the container.
func (e *podEnd) endedLike(other *podEnd) bool {
	return e.exitCode != nil && ptr.Equal(e.exitCode, other.exitCode) && *e.exitCode < signalled
}

// endedByJob reports whether the pod was deleted because the Job had failed: the Job controller then deletes all
// running pods. The first end that the watch reported cannot be one of them, because nothing had failed before it.
func (e *podEnd) endedByJob(failedAt time.Time) bool {
	return !e.deleted.IsZero() && !e.deleted.Before(failedAt) && e.order != 1
}

// describe returns a description of the end, with the end of the output.
func (e *podEnd) describe() string {
	text := fmt.Sprintf("rank %d (pod %s) ", e.rank, e.pod)
	switch {
	case e.unstarted:
		text += "did not start"
	case e.exitCode != nil:
		text += fmt.Sprintf("ended with exit code %d", *e.exitCode)
	default:
		text += "was lost"
	}
	if e.cause != "" {
		text += " (" + e.cause + ")"
	}
	if !e.deleted.IsZero() {
		text += ", because it was deleted"
	}
	parts := []string{text, e.detail, e.output}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
}

// firstToFail is the end that caused the others: that of rank 0, or of the first other rank that failed. nil if it was
// not observed.
func firstToFail(failedAt time.Time, leader, follower *podEnd) *podEnd {
	if leader != nil && !leader.failed() {
		leader = nil
	}
	if leader == nil || follower == nil {
		return onlyToFail(failedAt, cmp.Or(leader, follower))
	}
	switch {
	// 1. A follower that was deleted and ended with 0 is the cause only if the Job controller then ended rank 0.
	case !follower.failed() && !leader.endedByJob(failedAt):
		return leader
	// 2. Both ended by themselves, with the same exit code: for the same reason.
	case leader.endedLike(follower):
		return leader
	// 3. A user or the Job controller deleted one of them, and the watch has reported the order.
	case leader.order > 0 && follower.order > 0 && (!leader.deleted.IsZero() || !follower.deleted.IsZero()):
		if leader.order < follower.order {
			return leader
		}
		return follower
	}
	return firstByTime(failedAt, leader, follower)
}

// onlyToFail is the end that caused the others, where one is known: that one, unless the failure of the Job ended it.
func onlyToFail(failedAt time.Time, only *podEnd) *podEnd {
	if only == nil || only.endedByJob(failedAt) {
		return nil
	}
	return only
}

// firstByTime is the earlier of two ends, according to their timestamps.
func firstByTime(failedAt time.Time, leader, follower *podEnd) *podEnd {
	switch {
	case leader.endedByJob(failedAt) && follower.endedByJob(failedAt):
		return nil
	case follower.endedByJob(failedAt):
		return leader
	case leader.endedByJob(failedAt):
		return follower
	// If both are in the same second, the follower was first: if rank 0 ends first, the others end with 0.
	case leader.at.Before(follower.at):
		return leader
	}
	return follower
}
