package controller

import (
	"errors"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

// longestMessage is how many bytes of a condition's message are kept. All of a status is to stay well below what the
// store takes.
const longestMessage = 2048

// ending is how the work ends.
type ending struct {
	condition, reason, message string
}

// endOf is how the work ends now; nil if it does not. It is known from the record alone: what is not recorded could
// be forgotten. The second value is how long it may yet take until it does, 0 if only an event can tell.
func endOf(seen *facts) (*ending, time.Duration) {
	if seen.goop.Ended() || seen.unreadable != "" {
		return nil, 0
	}
	if seen.lost != "" {
		return &ending{v1alpha1.ConditionFailed, v1alpha1.ReasonRecordLost, "ConfigMap " + seen.lost + " of the record is gone: which workers have finished is not known any more"}, 0
	}
	failed := seen.record.Failed
	switch finished := allRecorded(seen); {
	case failed > 0 && seen.goop.Spec.FailurePolicy == v1alpha1.FailurePolicyFailFast:
		return &ending{v1alpha1.ConditionFailed, v1alpha1.ReasonWorkersFailed, workersFailed(seen) + ", and failurePolicy is FailFast"}, 0
	case finished && failed > 0:
		return &ending{v1alpha1.ConditionFailed, v1alpha1.ReasonWorkersFailed, workersFailed(seen)}, 0
	case finished:
		return &ending{v1alpha1.ConditionComplete, v1alpha1.ReasonSucceeded, "every worker has ended with 0"}, 0
	case seen.narrow || seen.goop.Spec.ActiveDeadlineSeconds == nil || seen.record.Started.IsZero():
		return nil, 0
	}
	deadline := *seen.goop.Spec.ActiveDeadlineSeconds
	if left := seen.record.Started.Add(time.Duration(deadline) * time.Second).Sub(seen.now); left > 0 {
		return nil, left
	}
	return &ending{v1alpha1.ConditionFailed, v1alpha1.ReasonDeadlineExceeded, fmt.Sprintf("activeDeadlineSeconds (%d) are over", deadline)}, 0
}

// workersFailed names the first failure. Counts are in the status, and would change the message with each worker.
func workersFailed(seen *facts) string {
	if len(seen.record.Failures) == 0 {
		return "a worker has not ended with 0"
	}
	first := seen.record.Failures[0]
	return fmt.Sprintf("a worker has not ended with 0 in all its tries, first that of round %d on node %s: exit code %d", first.Round, first.Node, first.ExitCode)
}

// allRecorded tells whether all workers have finished. Without a jobCount there is one on each node that may be used,
// and there has to have been one.
func allRecorded(seen *facts) bool {
	if count := seen.goop.Spec.JobCount; count != nil {
		return len(seen.record.Finished) >= int(*count)
	}
	for _, node := range seen.eligible {
		if !seen.record.Finished[plan.Place{Node: node}] {
			return false
		}
	}
	return len(seen.record.Finished) > 0
}

// desiredCount is how many workers there are to be in all.
func desiredCount(seen *facts) int32 {
	if count := seen.goop.Spec.JobCount; count != nil {
		return *count
	}
	count := len(seen.record.Finished)
	for _, node := range seen.eligible {
		if !seen.record.Finished[plan.Place{Node: node}] {
			count++
		}
	}
	return int32(count)
}

// desiredStatus is the status that the facts amount to. When the work is over the counts stay: the record may be gone.
func desiredStatus(seen *facts) v1alpha1.GoopStatus {
	goop := seen.goop
	status := *goop.Status.DeepCopy()
	status.ObservedGeneration = goop.Generation
	status.Running = int32(seen.tale.running)
	switch {
	case goop.Ended():
		set(&status, seen, metav1.Condition{Type: v1alpha1.ConditionRunning, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonFinished, Message: "the work is over"})
	default:
		status.RecordUIDs = seen.uids
		count(&status, seen)
		set(&status, seen, runningCondition(seen))
		if suspended := suspendedCondition(seen); suspended != nil {
			set(&status, seen, *suspended)
		}
	}
	for i := range status.Conditions {
		status.Conditions[i].ObservedGeneration = goop.Generation
	}
	return status
}

// endStatus is the status of the moment in which the work ends.
func endStatus(seen *facts, end ending) v1alpha1.GoopStatus {
	status := desiredStatus(seen)
	set(&status, seen, metav1.Condition{Type: v1alpha1.ConditionRunning, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonFinished, Message: "the work is over"})
	set(&status, seen, metav1.Condition{Type: end.condition, Status: metav1.ConditionTrue, Reason: end.reason, Message: end.message})
	status.CompletionTime = new(metav1.NewTime(seen.now))
	// What is lost is so for good, and recorded as well as can be.
	for number := range status.RecordUIDs {
		if seen.shards[number] == nil {
			status.RecordUIDs[number] = ""
		}
	}
	return status
}

func set(status *v1alpha1.GoopStatus, seen *facts, condition metav1.Condition) {
	condition.Message = shorten(condition.Message, longestMessage)
	condition.ObservedGeneration = seen.goop.Generation
	condition.LastTransitionTime = metav1.NewTime(seen.now)
	apimeta.SetStatusCondition(&status.Conditions, condition)
}

// count takes over what is recorded. Of a record that cannot be read, what it last said stays.
func count(status *v1alpha1.GoopStatus, seen *facts) {
	if seen.damaged() {
		return
	}
	status.Desired = desiredCount(seen)
	status.Succeeded, status.Failed = seen.record.Succeeded, seen.record.Failed
	status.Failures = seen.record.Failures
	status.ExitCode = nil
	if len(seen.record.Finished) > 0 {
		status.ExitCode = new(seen.record.ExitCode)
	}
	if started := seen.record.Started; !started.IsZero() {
		status.StartTime = new(metav1.NewTime(started))
	}
}

// runningCondition decides the condition Running. Its reason is what a user should know first.
func runningCondition(seen *facts) metav1.Condition {
	running := metav1.Condition{Type: v1alpha1.ConditionRunning, Status: metav1.ConditionFalse}
	var tooMany *plan.TooManyRoundsError
	switch {
	// 1. The operator does not give what is asked for.
	case seen.hostRefused:
		running.Reason = v1alpha1.ReasonHostAccessRefused
		running.Message = hostAccessMessage
		return running
	// 2. Nothing is wanted.
	case seen.goop.Spec.Suspend:
		suspended := suspendedCondition(seen)
		running.Reason, running.Message = suspended.Reason, suspended.Message
		return running
	// 3. Something is in the way. Other workers may be at work.
	case seen.refused != nil:
		running.Reason, running.Message = seen.refused.reason, seen.refused.message
	case errors.Is(seen.unplanned, plan.ErrNoEligibleNodes):
		running.Reason = v1alpha1.ReasonNoEligibleNodes
		running.Message = "no node has the labels of spec.nodeSelector and only taints that spec.tolerations allow; the work begins when there is one"
	case errors.As(seen.unplanned, &tooMany):
		running.Reason = v1alpha1.ReasonTooManyRounds
		running.Message = tooMany.Error() + "; lower spec.jobCount in another Goop, or add nodes"
	case seen.tale.trouble != nil:
		running.Reason, running.Message = seen.tale.trouble.reason, seen.tale.trouble.message
	case seen.noPods:
		running.Reason = v1alpha1.ReasonNoPods
		running.Message = "there is work to be done, and no pod is made for it: the Events of the DaemonSets say why " +
			"(kubectl events --for daemonset/" + roundName(seen.goop.Name, 0) + "), a quota or the namespace's Pod Security level, say"
	// 4. All is well. No numbers in the message: each would be a write.
	default:
		running.Status = metav1.ConditionTrue
		running.Reason, running.Message = v1alpha1.ReasonWorking, "workers are at work, or are about to be"
		return running
	}
	if seen.tale.running > 0 {
		running.Status = metav1.ConditionTrue
	}
	return running
}

// lacksPods tells whether work is to be done and nothing is at work: for a moment after each start that is so.
func lacksPods(seen *facts) bool {
	return !seen.narrow && seen.refused == nil && seen.unplanned == nil && seen.unreadable == "" &&
		seen.lost == "" &&
		seen.tale.left == 0 && len(seen.tale.ended) == 0 && !allRecorded(seen)
}

// suspendedCondition decides the condition Suspended; nil if the Goop has never been suspended.
func suspendedCondition(seen *facts) *metav1.Condition {
	suspended := &metav1.Condition{Type: v1alpha1.ConditionSuspended, Status: metav1.ConditionFalse}
	switch {
	case seen.goop.Spec.Suspend && seen.tale.left > 0:
		suspended.Reason, suspended.Message = v1alpha1.ReasonSuspending, "waiting for workers that are not finished to end"
	case seen.goop.Spec.Suspend:
		suspended.Status = metav1.ConditionTrue
		suspended.Reason, suspended.Message = v1alpha1.ReasonSuspended, "suspended: no unfinished worker is left"
	case apimeta.FindStatusCondition(seen.goop.Status.Conditions, v1alpha1.ConditionSuspended) != nil:
		suspended.Reason, suspended.Message = v1alpha1.ReasonResumed, "resumed: what was not finished begins anew"
	default:
		return nil
	}
	return suspended
}

func sameStatus(a, b v1alpha1.GoopStatus) bool { return apiequality.Semantic.DeepEqual(a, b) }
