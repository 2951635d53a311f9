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

// lastWordsTimeout is how long after the failure of a Job the end of rank 0 is waited for: the grace period, and
// what the kubelet takes to tell.
const lastWordsTimeout = 15 * time.Second

// setupEnd is how an attempt has ended.
type setupEnd struct {
	// kind is Complete or Failed.
	kind, reason, message string
	exitCode              *int32
}

func failure(reason, message string) *setupEnd {
	return &setupEnd{kind: v1alpha1.ConditionFailed, reason: reason, message: message}
}

// verdictOf is what the Job controller says of a Job that has come to its end; nil if it is still at work. What
// it says first counts: Complete and Failed come later, when all pods are gone.
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

// endOfAttempt is how an attempt that is under way ends now; nil if it does not. The second value is how long it
// may yet take until it does, 0 if only an event can tell.
func endOfAttempt(setup *v1alpha1.FluxSetup, seen setupFacts, quorumReached bool) (*setupEnd, time.Duration) {
	leader := seen.last.leader
	switch {
	case seen.lost:
		end := failure(v1alpha1.ReasonJobLost, fmt.Sprintf("Job %s, of uid %s, is gone: somebody deleted it", setup.Name, setup.Spec.Launch.JobUID))
		if leader != nil && leader.exitCode != nil {
			end.message += "; " + leader.story()
			end.exitCode = leader.exitCode
		}
		return end, 0
	case seen.job != nil && verdictOf(seen.job) != nil:
		return endOfJob(setup, seen)
	// The Job controller has yet to say what it makes of the leader's end.
	case setup.Spec.Suspend || quorumReached || !launched(setup) || (leader != nil && leader.over):
		return nil, 0
	}
	if left := startupEnd(setup).Sub(seen.now); left > 0 {
		return nil, left
	}
	return endOfStartup(setup, seen), 0
}

// endOfStartup tells why the quorum was not reached in time.
func endOfStartup(setup *v1alpha1.FluxSetup, seen setupFacts) *setupEnd {
	end := failure("", fmt.Sprintf("the quorum was not reached within %d s: ", setup.Spec.StartupTimeoutSeconds))
	switch {
	case seen.refused != nil:
		end.reason = seen.refused.reason
		end.message += seen.refused.message
	case seen.waiting != "":
		end.reason = v1alpha1.ReasonPodsRemain
		end.message += seen.waiting + " of an earlier attempt is still there"
	default:
		trouble := startTrouble(setup, seen.pods, true)
		end.reason = trouble.reason
		end.message += trouble.message
	}
	return end
}

// endOfJob tells how an attempt ended whose Job has come to its end.
func endOfJob(setup *v1alpha1.FluxSetup, seen setupFacts) (*setupEnd, time.Duration) {
	verdict, leader := verdictOf(seen.job), seen.last.leader
	if verdict.Type == batchv1.JobSuccessCriteriaMet || verdict.Type == batchv1.JobComplete {
		return &setupEnd{
			kind: v1alpha1.ConditionComplete, reason: v1alpha1.ReasonCommandSucceeded,
			message: "the command has ended with 0", exitCode: new(int32(0)),
		}, 0
	}
	// What rank 0 has to say is worth waiting for, but not for ever: its node may be gone.
	failedAt := verdict.LastTransitionTime.Time
	if left := failedAt.Add(lastWordsTimeout).Sub(seen.now); left > 0 && (leader == nil || !leader.over) {
		return nil, left
	}

	end := endOfFailedJob(setup, verdict, firstToFail(failedAt, leader, seen.last.follower), leader)
	if leader != nil {
		end.exitCode = leader.exitCode
	}
	return end, 0
}

// endOfFailedJob tells why a Job failed: blamed is what brought it about, nil if nobody saw that.
func endOfFailedJob(setup *v1alpha1.FluxSetup, verdict *batchv1.JobCondition, blamed, leader *podEnd) *setupEnd {
	var end *setupEnd
	switch {
	case verdict.Reason == batchv1.JobReasonDeadlineExceeded:
		end = failure(v1alpha1.ReasonDeadlineExceeded, fmt.Sprintf("activeDeadlineSeconds (%s) are over", deadlineOf(setup)))
		blamed = nil
	case blamed == nil:
		end = failure(v1alpha1.ReasonBrokerFailed, "a broker was lost, and nobody saw which: "+verdict.Message)
	case blamed.unstarted:
		end = failure(v1alpha1.ReasonPodNotStarted, blamed.story())
	case blamed == leader:
		end = failure(v1alpha1.ReasonCommandFailed, blamed.story())
	default:
		end = failure(v1alpha1.ReasonBrokerFailed, blamed.story())
	}
	switch {
	case blamed != nil && blamed == leader && blamed.unstarted:
		// It had nothing to say.
	case leader == nil || leader.exitCode == nil:
		end.message += "; " + v1alpha1.LogUnavailable + ": nobody saw rank 0 end"
	case leader != blamed:
		end.message += "; " + leader.story()
	}
	return end
}

func deadlineOf(setup *v1alpha1.FluxSetup) string {
	if setup.Spec.ActiveDeadlineSeconds == nil {
		return "since taken back"
	}
	return fmt.Sprintf("%d", *setup.Spec.ActiveDeadlineSeconds)
}

// firstToFail is the end that brought the others about: rank 0's, or that of the first of the other ranks that
// failed. nil if it was not seen.
func firstToFail(failedAt time.Time, leader, follower *podEnd) *podEnd {
	if leader != nil && !leader.failed() {
		leader = nil
	}
	switch {
	// 1. It was the only one, unless it ended because the Job had failed.
	case leader == nil || follower == nil:
		only := cmp.Or(leader, follower)
		if only == nil || only.victim(failedAt) {
			return nil
		}
		return only
	// 2. Both ended by themselves, and in the same way: they had the same trouble.
	case leader.endedLike(follower):
		return leader
	// 3. One was deleted, by somebody or by the Job controller, and the watch has told the order.
	case leader.order > 0 && follower.order > 0 && (!leader.deleted.IsZero() || !follower.deleted.IsZero()):
		if leader.order < follower.order {
			return leader
		}
		return follower
	}
	return firstByTime(failedAt, leader, follower)
}

// firstByTime is the end that was before the other, as far as times tell.
func firstByTime(failedAt time.Time, leader, follower *podEnd) *podEnd {
	switch {
	case leader.victim(failedAt) && follower.victim(failedAt):
		return nil
	case follower.victim(failedAt):
		return leader
	case leader.victim(failedAt):
		return follower
	// In the same second, it was the follower: where rank 0 is the first, the others end with 0.
	case leader.at.Before(follower.at):
		return leader
	}
	return follower
}

// addLastWords adds the end of rank 0 to a failure that was written before it was seen.
func addLastWords(status *v1alpha1.FluxSetupStatus, leader *podEnd) {
	failed := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionFailed)
	if failed == nil || status.ExitCode != nil || leader == nil || leader.exitCode == nil {
		return
	}
	status.ExitCode = leader.exitCode
	before, _, _ := strings.Cut(failed.Message, "; "+v1alpha1.LogUnavailable)
	failed.Message = clip(before + "; " + leader.story())
}
