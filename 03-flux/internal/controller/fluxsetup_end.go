package controller

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// terminationTimeout is how long after the failure of a Job the end of rank 0 is waited for: the grace period, and what
// the kubelet takes to report it.
const terminationTimeout = 15 * time.Second

// setupEnd is how an attempt has ended.
type setupEnd struct {
	// kind is Complete or Failed.
	kind, reason, message string
	exitCode              *int32
}

func failedWith(reason, message string) *setupEnd {
	return &setupEnd{kind: v1alpha1.ConditionFailed, reason: reason, message: message}
}

// verdictOf is the condition by which the Job controller says that a Job has ended; nil if it has not. What it says first
// counts: Complete and Failed come later, when all pods are gone.
func verdictOf(job *batchv1.Job) *batchv1.JobCondition {
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete, batchv1.JobFailureTarget, batchv1.JobFailed} {
		for i := range job.Status.Conditions {
			if condition := &job.Status.Conditions[i]; condition.Type == kind && condition.Status == corev1.ConditionTrue {
				return condition
			}
		}
	}
	return nil
}

// endOfAttempt is how an attempt that is under way ends now; nil if it does not. The second value is how long it may yet
// take until it does, 0 if only an event can say so.
func endOfAttempt(setup *v1alpha1.FluxSetup, observed setupObservation, quorumReached bool) (*setupEnd, time.Duration) {
	leader := observed.ends.leader
	switch {
	case observed.lost:
		return endOfLostJob(setup, leader), 0
	case observed.job != nil && verdictOf(observed.job) != nil:
		return endOfJob(setup, observed)
	case observed.job != nil && changed(setup, observed.job):
		return failedWith(v1alpha1.ReasonJobChanged, fmt.Sprintf(
			"Job %s was suspended, or its parallelism changed, and not by the operator: what it ran is not run again in this attempt", observed.job.Name)), 0
	// The Job could not be read.
	case observed.job == nil && recorded(setup):
		return nil, 0
	// The Job controller has yet to say what it makes of the leader's end.
	case setup.Spec.Suspend || quorumReached || !launched(setup) || (leader != nil && leader.over):
		return nil, 0
	}
	if left := startupEnd(setup).Sub(observed.now); left > 0 {
		return nil, left
	}
	return endOfStartup(setup, observed), 0
}

// endOfLostJob is the end of an attempt whose Job is gone.
func endOfLostJob(setup *v1alpha1.FluxSetup, leader *podEnd) *setupEnd {
	end := failedWith(v1alpha1.ReasonJobLost, fmt.Sprintf("the Job of the attempt, of uid %s, is gone: it was deleted, and not by the operator", setup.Spec.Launch.JobUID))
	if leader != nil && leader.exitCode != nil {
		end.message += "; " + leader.describe()
		end.exitCode = leader.exitCode
	}
	return end
}

// endOfStartup says why the quorum was not reached in time.
func endOfStartup(setup *v1alpha1.FluxSetup, observed setupObservation) *setupEnd {
	end := failedWith("", fmt.Sprintf("the quorum was not reached within %d s: ", setup.Spec.StartupTimeoutSeconds))
	switch {
	case observed.failure != nil:
		end.reason = observed.failure.reason
		end.message += observed.failure.message
	case observed.waiting != "":
		end.reason = v1alpha1.ReasonPodsRemain
		end.message += observed.waiting + " of an earlier attempt still exists"
	default:
		failed := startFailureOf(setup, observed.pods, true)
		end.reason = failed.reason
		end.message += failed.message
	}
	return end
}

// endOfJob says how an attempt ended whose Job has ended. Rank 0 decides: its 0 is a success, even if another pod failed,
// or the deadline was exceeded, before the Job controller counted it. A broker that the kubelet ends never ends with 0.
func endOfJob(setup *v1alpha1.FluxSetup, observed setupObservation) (*setupEnd, time.Duration) {
	verdict, leader := verdictOf(observed.job), observed.ends.leader
	succeeded := leader != nil && leader.over && !leader.failed()
	if succeeded || verdict.Type == batchv1.JobSuccessCriteriaMet || verdict.Type == batchv1.JobComplete {
		return &setupEnd{
			kind: v1alpha1.ConditionComplete, reason: v1alpha1.ReasonCommandSucceeded,
			message: "the command has ended with 0", exitCode: new(int32(0)),
		}, 0
	}
	// The end of rank 0 is worth waiting for, but not for ever: its node may be gone.
	failedAt := verdict.LastTransitionTime.Time
	if left := failedAt.Add(terminationTimeout).Sub(observed.now); left > 0 && (leader == nil || !leader.over) {
		return nil, left
	}

	end := endOfFailedJob(setup, verdict, firstToFail(failedAt, leader, observed.ends.follower), leader)
	if leader != nil {
		end.exitCode = leader.exitCode
	}
	return end, 0
}

// endOfFailedJob says why a Job failed: first is the end that caused it, nil if it was not observed.
func endOfFailedJob(setup *v1alpha1.FluxSetup, verdict *batchv1.JobCondition, first, leader *podEnd) *setupEnd {
	var end *setupEnd
	switch {
	case verdict.Reason == batchv1.JobReasonDeadlineExceeded:
		end = failedWith(v1alpha1.ReasonDeadlineExceeded, fmt.Sprintf("activeDeadlineSeconds (%s) was exceeded", deadlineOf(setup)))
		first = nil
	case first == nil:
		end = failedWith(v1alpha1.ReasonBrokerFailed, "a broker was lost, and it was not observed which: "+verdict.Message)
	case first.unstarted:
		end = failedWith(v1alpha1.ReasonPodNotStarted, first.describe())
	case first == leader:
		end = failedWith(v1alpha1.ReasonCommandFailed, first.describe())
	default:
		end = failedWith(v1alpha1.ReasonBrokerFailed, first.describe())
	}
	switch {
	case first != nil && first == leader && first.unstarted:
		// It has no output.
	case leader == nil || leader.exitCode == nil:
		end.message += "; " + v1alpha1.LogUnavailable + ": the end of rank 0 was not observed"
	case leader != first:
		end.message += "; " + leader.describe()
	}
	return end
}

func deadlineOf(setup *v1alpha1.FluxSetup) string {
	if setup.Spec.ActiveDeadlineSeconds == nil {
		return "removed since"
	}
	return fmt.Sprintf("%d", *setup.Spec.ActiveDeadlineSeconds)
}

// firstToFail is the end that caused the others: rank 0's, or that of the first of the other ranks that failed. nil if it
// was not observed.
func firstToFail(failedAt time.Time, leader, follower *podEnd) *podEnd {
	if leader != nil && !leader.failed() {
		leader = nil
	}
	switch {
	// 1. It was the only one, unless it ended because the Job had failed.
	case leader == nil || follower == nil:
		only := cmp.Or(leader, follower)
		if only == nil || only.endedByJob(failedAt) {
			return nil
		}
		return only
	// 2. Both ended by themselves, and in the same way: for the same reason.
	case leader.endedLike(follower):
		return leader
	// 3. One was deleted, by a user or by the Job controller, and the watch has reported the order.
	case leader.order > 0 && follower.order > 0 && (!leader.deleted.IsZero() || !follower.deleted.IsZero()):
		if leader.order < follower.order {
			return leader
		}
		return follower
	}
	return firstByTime(failedAt, leader, follower)
}

// firstByTime is the end that was before the other, as far as times say.
func firstByTime(failedAt time.Time, leader, follower *podEnd) *podEnd {
	switch {
	case leader.endedByJob(failedAt) && follower.endedByJob(failedAt):
		return nil
	case follower.endedByJob(failedAt):
		return leader
	case leader.endedByJob(failedAt):
		return follower
	// In the same second, it was the follower: where rank 0 is the first, the others end with 0.
	case leader.at.Before(follower.at):
		return leader
	}
	return follower
}

// addTermination adds the end of rank 0 to a failure that was written before it was observed.
func addTermination(status *v1alpha1.FluxSetupStatus, leader *podEnd) {
	failed := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionFailed)
	if failed == nil || status.ExitCode != nil || leader == nil || leader.exitCode == nil {
		return
	}
	status.ExitCode = leader.exitCode
	before, _, _ := strings.Cut(failed.Message, "; "+v1alpha1.LogUnavailable)
	failed.Message = shorten(before+"; "+leader.describe(), maxConditionMessage)
}
