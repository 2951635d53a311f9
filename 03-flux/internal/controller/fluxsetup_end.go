package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"example.com/workbook/03-flux/api/v1alpha1"
)

const (
	// terminationTimeout is how long the operator waits for the end of rank 0 after the Job has failed: the grace
	// period, and the time that the kubelet takes to report it. It is also how long the operator waits for the end of
	// the Job after the end of rank 0, if another container keeps the pod from ending.
	terminationTimeout = 15 * time.Second
	// jobResultTimeout is how long the operator waits for the end of the Job after the end of rank 0, if only the kubelet
	// and the Job controller still have to act. They are slow if a node is busy. After the same time the pods of an
	// unreachable node are deleted (by the tolerationSeconds that admission sets on each pod).
	jobResultTimeout = 5 * time.Minute
)

// setupEnd is how an attempt ended.
type setupEnd struct {
	// kind is Complete or Failed.
	kind, reason, message string
	exitCode              *int32
}

func failedWith(reason, message string) *setupEnd {
	return &setupEnd{kind: v1alpha1.ConditionFailed, reason: reason, message: message}
}

// jobResult is the condition by which the Job controller reports the end of a Job; nil if the Job has not ended. The
// earliest conditions are SuccessCriteriaMet and FailureTarget: Complete and Failed follow when all pods have
// terminated.
func jobResult(job *batchv1.Job) *batchv1.JobCondition {
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete, batchv1.JobFailureTarget, batchv1.JobFailed} {
		for i := range job.Status.Conditions {
			if condition := &job.Status.Conditions[i]; condition.Type == kind && condition.Status == corev1.ConditionTrue {
				return condition
			}
		}
	}
	return nil
}

// lost reports whether the Job of an active attempt no longer exists, or is being deleted. A finalizer of another
// client may keep a deleted Job, but the Job controller does not finish it any more. The operator deletes no Job before
// its attempt has ended.
func lost(job *batchv1.Job) bool {
	return job == nil || (!job.DeletionTimestamp.IsZero() && jobResult(job) == nil)
}

func commandSucceeded() *setupEnd {
	return &setupEnd{
		kind: v1alpha1.ConditionComplete, reason: v1alpha1.ReasonCommandSucceeded,
		message: "the command exited with 0", exitCode: new(int32(0)),
	}
}

// kept reports whether the Job of an attempt that has ended is kept: either the Job has ended by itself, or the command
// has succeeded, and the log of rank 0 is the only copy of its output. A Job that another writer has suspended is
// deleted in any case: if it were resumed, it would run the command again.
func kept(setup *v1alpha1.FluxSetup, job *batchv1.Job) bool {
	return jobResult(job) != nil ||
		(trueCondition(setup.Status.Conditions, v1alpha1.ConditionComplete) != nil && !changed(setup, job))
}

// endOfAttempt is how an active attempt ends by this observation; nil if it does not. The second result is how long it
// may still take to end; 0 if only an event can end it.
func endOfAttempt(setup *v1alpha1.FluxSetup, observed setupObservation, quorumReached bool) (*setupEnd, time.Duration) {
	leader := observed.ends.leader
	switch {
	case observed.lost:
		return endOfLostJob(setup, leader), 0
	case replacementOf(firstLeader(setup, observed), observed.pods) != "":
		return endOfReplacedLeader(setup, observed), 0
	// The Job will be deleted, and a resume would run the command again: there is nothing to wait for.
	case setup.Spec.Suspend && leader.succeeded():
		return commandSucceeded(), 0
	case observed.job != nil && jobResult(observed.job) != nil:
		return endOfJob(setup, observed)
	case observed.job != nil && changed(setup, observed.job) && !leader.succeeded():
		return failedWith(v1alpha1.ReasonJobChanged, fmt.Sprintf(
			"suspend, parallelism, backoffLimit or another field of Job %s that decides how often the command runs was changed by another client: what it ran is not run again in this attempt", observed.job.Name)), 0
	// The Job could not be read.
	case observed.job == nil && jobRecorded(setup):
		return nil, 0
	case leader != nil && leader.ended:
		return endOfLeader(setup, observed)
	}
	return endOfStartup(setup, observed, quorumReached)
}

// endBeforeLaunch is the end of an attempt that was not launched; nil if it may still be launched.
func endBeforeLaunch(observed setupObservation) *setupEnd {
	if observed.failure == nil || observed.failure.reason != v1alpha1.ReasonSetupChanged {
		return nil
	}
	return failedWith(observed.failure.reason, observed.failure.message)
}

// endOfLostJob is the end of an attempt whose Job was deleted. If rank 0 was observed to succeed, the attempt is a
// success.
func endOfLostJob(setup *v1alpha1.FluxSetup, leader *podEnd) *setupEnd {
	if leader.succeeded() {
		return commandSucceeded()
	}
	end := failedWith(v1alpha1.ReasonJobLost, fmt.Sprintf("the Job of the attempt, of uid %s, was deleted by another client", setup.Spec.Launch.JobUID))
	if leader != nil && leader.exitCode != nil {
		end.message += "; " + leader.describe()
		end.exitCode = leader.exitCode
	}
	return end
}

// firstLeader is the name of the first pod of rank 0; "" if it is not known.
func firstLeader(setup *v1alpha1.FluxSetup, observed setupObservation) string {
	switch {
	case current(setup) && setup.Status.LeaderPod != "":
		return setup.Status.LeaderPod
	case observed.ends.leader != nil:
		return observed.ends.leader.pod
	}
	return ""
}

// endOfReplacedLeader is the end of an attempt whose command started again in a second pod of rank 0. Neither the end
// of that pod nor the conditions of the Job count.
func endOfReplacedLeader(setup *v1alpha1.FluxSetup, observed setupObservation) *setupEnd {
	first, leader := firstLeader(setup, observed), observed.ends.leader
	switch {
	case leader == nil || leader.exitCode == nil || leader.pod != first:
		return failedWith(v1alpha1.ReasonJobChanged, fmt.Sprintf(
			"pod %s of rank 0 was replaced by pod %s, as happens where another client has suspended and resumed the Job or removed the pod's finalizer: how it ended was not observed, and what it ran is not run again in this attempt",
			first, replacementOf(first, observed.pods)))
	case leader.succeeded():
		return commandSucceeded()
	}
	return endOfFailedJob(setup, &batchv1.JobCondition{}, leader, leader)
}

// endOfStartup is why the quorum was not reached, once startupTimeoutSeconds has expired.
func endOfStartup(setup *v1alpha1.FluxSetup, observed setupObservation, quorumReached bool) (*setupEnd, time.Duration) {
	switch {
	case setup.Spec.Suspend || quorumReached:
		return nil, 0
	case !launchRecorded(setup):
		return endBeforeLaunch(observed), 0
	}
	if left := startupEnd(setup, observed.since).Sub(observed.now); left > 0 {
		return nil, left
	}
	end := failedWith("", fmt.Sprintf("the quorum was not reached within %d s: ", setup.Spec.StartupTimeoutSeconds))
	switch {
	case observed.failure != nil:
		end.reason = observed.failure.reason
		end.message += observed.failure.message
	case observed.waiting != "":
		end.reason = v1alpha1.ReasonPodsRemain
		end.message += observed.waiting + " of an earlier attempt still exists"
	default:
		failed := startFailureOf(setup, observed, true)
		end.reason = failed.reason
		end.message += failed.message
	}
	return end, 0
}

// endOfJob is how an attempt ended whose Job has ended. Rank 0 decides: exit code 0 is a success, even if the Job
// controller counted the failure of another pod or the deadline first. A broker that the kubelet terminates never ends
// with 0.
func endOfJob(setup *v1alpha1.FluxSetup, observed setupObservation) (*setupEnd, time.Duration) {
	result, leader := jobResult(observed.job), observed.ends.leader
	if leader.succeeded() || result.Type == batchv1.JobSuccessCriteriaMet || result.Type == batchv1.JobComplete {
		return commandSucceeded(), 0
	}
	first := firstToFail(result.LastTransitionTime.Time, leader, observed.ends.follower)
	// Wait for the end of rank 0, and for the ends of all, of which one may have caused it. But not forever: a node may be lost.
	pending := leader == nil || !leader.ended || (first == leader && !allEnded(observed.job))
	if left := observed.ends.waitLeft(observed.now, terminationTimeout); left > 0 && pending {
		return nil, left
	}
	return endOfFailedJob(setup, result, first, leader), 0
}

// allEnded reports whether all pods of a Job that has failed have ended: only then is its condition Failed set.
func allEnded(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(condition batchv1.JobCondition) bool {
		return condition.Type == batchv1.JobFailed && condition.Status == corev1.ConditionTrue
	})
}

// endOfLeader is how an attempt ended whose rank 0 has ended while its Job has not. The operator waits until the Job
// controller ends the Job: after a failure the operator deletes a Job that still runs, and its log with it. It does not
// wait forever, because the Job does not end as long as another container runs in the pod of rank 0. If the Job was
// changed, there is nothing to wait for.
func endOfLeader(setup *v1alpha1.FluxSetup, observed setupObservation) (*setupEnd, time.Duration) {
	leader := observed.ends.leader
	timeout := jobResultTimeout
	if outlived(leader, observed.pods) {
		timeout = terminationTimeout
	}
	left := observed.ends.waitLeft(observed.now, timeout)
	switch {
	case left > 0 && !changed(setup, observed.job):
		return nil, left
	case leader.succeeded():
		return commandSucceeded(), 0
	}
	return endOfFailedJob(setup, &batchv1.JobCondition{}, firstToFail(observed.now, leader, observed.ends.follower), leader), 0
}

// endOfFailedJob is why a Job failed. first is the end that caused it; nil if it was not observed.
func endOfFailedJob(setup *v1alpha1.FluxSetup, result *batchv1.JobCondition, first, leader *podEnd) *setupEnd {
	var end *setupEnd
	switch {
	case result.Reason == batchv1.JobReasonDeadlineExceeded:
		end = failedWith(v1alpha1.ReasonDeadlineExceeded, fmt.Sprintf("activeDeadlineSeconds (%s) was exceeded", deadlineOf(setup)))
		first = nil
	case first == nil:
		end = failedWith(v1alpha1.ReasonBrokerFailed, "a broker was lost, and it was not observed which: "+result.Message)
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
	if leader != nil {
		end.exitCode = leader.exitCode
	}
	return end
}

func deadlineOf(setup *v1alpha1.FluxSetup) string {
	if setup.Spec.ActiveDeadlineSeconds == nil {
		return "removed since"
	}
	return fmt.Sprintf("%d", *setup.Spec.ActiveDeadlineSeconds)
}

// addTermination adds the end of rank 0 to a failure that was reported before that end was observed.
func addTermination(status *v1alpha1.FluxSetupStatus, leader *podEnd) {
	failed := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionFailed)
	if failed == nil || status.ExitCode != nil || leader == nil || leader.exitCode == nil {
		return
	}
	status.ExitCode = leader.exitCode
	before, _, _ := strings.Cut(failed.Message, "; "+v1alpha1.LogUnavailable)
	failed.Message = shorten(before+"; "+leader.describe(), maxConditionMessage)
}
