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

// signalled is where exit codes begin that stand for a signal.
const signalled = 128

// podEnd is how a broker's pod has ended, or that it is about to.
type podEnd struct {
	pod  string
	uid  types.UID
	rank int32

	// order is its place among the ends that the watch has reported, from 1; 0 if the watch did not report it.
	order int
	// at is when it ended or was deleted, whichever came first.
	at time.Time
	// deleted is when its deletion was requested; zero if it was not, or had ended before.
	deleted time.Time

	// over: nothing more will be known. Otherwise the container still exists.
	over bool
	// exitCode is nil if the kubelet did not report one.
	exitCode *int32
	// unstarted: the container never ran.
	unstarted bool
	// cause is a reason of the kubelet's, such as OOMKilled or Evicted, and detail its message. output is the end of the
	// container's output.
	cause, detail, output string
}

// endOfPod reads it from a pod: nil if it has not ended and is not being deleted. gone is set if the pod does not exist
// any more: nothing will be added to it.
func endOfPod(pod *corev1.Pod, gone bool) *podEnd {
	end := podEnd{pod: pod.Name, uid: pod.UID, rank: rankOf(pod), over: gone}
	var finished time.Time
	if status := brokerStatus(pod); status != nil && status.State.Terminated != nil {
		finished = status.State.Terminated.FinishedAt.Time
		end.read(status.State.Terminated)
	}
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		end.over = true
		end.cause = cmp.Or(pod.Status.Reason, end.cause)
		end.detail = cmp.Or(strings.TrimSpace(pod.Status.Message), end.detail)
		// The kubelet rejects a pod, or evicts it, as a whole.
		end.unstarted = end.unstarted || (brokerStatus(pod) == nil && pod.Status.Reason != "Evicted")
	}
	if finished.Unix() <= 0 {
		finished = lastTransition(pod)
	}
	if pod.DeletionTimestamp == nil && !end.over {
		return nil
	}
	end.date(pod, finished)
	return &end
}

// date decides when it began to end, and whether that was because of its deletion.
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
		// The kubelet is done with it, and has changed the time of the deletion: that was when it ended, or before.
		e.at, e.deleted = finished, finished
	default:
		e.at, e.deleted = finished, time.Time{}
	}
}

// read copies how the container ended.
func (e *podEnd) read(terminated *corev1.ContainerStateTerminated) {
	e.over, e.exitCode = true, new(terminated.ExitCode)
	e.cause, e.output = terminated.Reason, strings.TrimSpace(terminated.Message)
	switch terminated.Reason {
	case "Error", "Completed":
		e.cause = ""
	case "StartError", "ContainerCannotRun":
		// A container that never ran has no output: the message is the runtime's.
		e.unstarted, e.detail, e.output = true, e.output, ""
	case "ContainerStatusUnknown":
		// The kubelet has lost it, and makes up an exit code.
		e.exitCode, e.detail, e.output = nil, e.output, ""
	}
}

// lastTransition is when one of the pod's conditions changed last.
func lastTransition(pod *corev1.Pod) time.Time {
	last := pod.CreationTimestamp.Time
	for _, condition := range pod.Status.Conditions {
		if condition.LastTransitionTime.After(last) {
			last = condition.LastTransitionTime.Time
		}
	}
	return last
}

// failed tells whether the broker did not end well.
func (e *podEnd) failed() bool {
	return e.exitCode == nil || *e.exitCode != 0
}

// endedLike tells whether both ended by themselves, with the same exit code. A signal comes from outside.
func (e *podEnd) endedLike(other *podEnd) bool {
	return e.exitCode != nil && ptr.Equal(e.exitCode, other.exitCode) && *e.exitCode < signalled
}

// endedByJob tells whether the pod was deleted when the Job had failed, which is when the Job controller deletes all pods
// that still run. What the watch reported first was not: nothing had failed by then.
func (e *podEnd) endedByJob(failedAt time.Time) bool {
	return !e.deleted.IsZero() && !e.deleted.Before(failedAt) && e.order != 1
}

// describe says how it ended, with the end of the output.
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
