package controller

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

// ending is how the work ends.
type ending struct {
	condition, reason, message string
}

// endOf is how the work ends now; nil if it does not. It is known from the record alone: what is not recorded could
// be forgotten. The second value is how long it may yet take until it does, 0 if only an event can announce it.
func endOf(observed *observation) (*ending, time.Duration) {
	if observed.goop.Ended() || observed.unreadable != "" {
		return nil, 0
	}
	if observed.lost != "" {
		return &ending{v1alpha1.ConditionFailed, v1alpha1.ReasonRecordLost, "ConfigMap " + observed.lost + " of the record is gone: which workers have finished is not known any more"}, 0
	}
	failed := observed.record.Failed
	switch finished := allRecorded(observed); {
	case failed > 0 && observed.goop.Spec.FailurePolicy == v1alpha1.FailurePolicyFailFast:
		return &ending{v1alpha1.ConditionFailed, v1alpha1.ReasonWorkersFailed, workersFailed(observed) + ", and failurePolicy is FailFast"}, 0
	case finished && failed > 0:
		return &ending{v1alpha1.ConditionFailed, v1alpha1.ReasonWorkersFailed, workersFailed(observed)}, 0
	case finished:
		return &ending{v1alpha1.ConditionComplete, v1alpha1.ReasonSucceeded, "every worker has ended with 0"}, 0
	case observed.stopping || observed.goop.Spec.ActiveDeadlineSeconds == nil || observed.record.Started.IsZero():
		return nil, 0
	}
	deadline := *observed.goop.Spec.ActiveDeadlineSeconds
	if left := observed.record.Started.Add(time.Duration(deadline) * time.Second).Sub(observed.now); left > 0 {
		return nil, left
	}
	return &ending{v1alpha1.ConditionFailed, v1alpha1.ReasonDeadlineExceeded, fmt.Sprintf("activeDeadlineSeconds (%d) was exceeded", deadline)}, 0
}

// workersFailed names the first failure. Counts are in the status, and would change the message with each worker.
func workersFailed(observed *observation) string {
	if len(observed.record.Failures) == 0 {
		return "a worker has not ended with 0"
	}
	first := observed.record.Failures[0]
	return fmt.Sprintf("a worker has not ended with 0 in all its tries, first that of round %d on node %s: exit code %d", first.Round, first.Node, first.ExitCode)
}

// allRecorded tells whether all workers have finished. Without a jobCount there is one on each node that may be used,
// and there has to have been one.
func allRecorded(observed *observation) bool {
	if count := observed.goop.Spec.JobCount; count != nil {
		return len(observed.record.Finished) >= int(*count)
	}
	for _, node := range observed.eligible {
		if !observed.record.Finished[plan.Place{Node: node}] {
			return false
		}
	}
	return len(observed.record.Finished) > 0
}

// desiredCount is how many workers there are to be in all.
func desiredCount(observed *observation) int32 {
	if count := observed.goop.Spec.JobCount; count != nil {
		return *count
	}
	count := len(observed.record.Finished)
	for _, node := range observed.eligible {
		if !observed.record.Finished[plan.Place{Node: node}] {
			count++
		}
	}
	return int32(count)
}

// desiredStatus is the status that the observation amounts to. When the work is over the counts stay: the record may be
// gone.
func desiredStatus(observed *observation) v1alpha1.GoopStatus {
	goop := observed.goop
	status := *goop.Status.DeepCopy()
	status.ObservedGeneration = goop.Generation
	if observed.complete {
		status.Running = int32(observed.work.running)
		if !goop.Ended() || !goop.DeletionTimestamp.IsZero() {
			status.RecordUIDs = observed.uids
		}
		if !goop.Ended() && !isDamaged(observed) {
			count(&status, observed)
		}
	}
	set(&status, observed, runningCondition(observed))
	if suspended := suspendedCondition(observed); suspended != nil {
		set(&status, observed, *suspended)
	}
	if !goop.DeletionTimestamp.IsZero() && status.CleanupStartTime == nil {
		status.CleanupStartTime = new(metav1.NewTime(observed.now))
	}
	for i := range status.Conditions {
		status.Conditions[i].ObservedGeneration = goop.Generation
	}
	return status
}

// endStatus is the status of the moment in which the work ends.
func endStatus(observed *observation, end ending) v1alpha1.GoopStatus {
	status := desiredStatus(observed)
	set(&status, observed, finishedCondition)
	// Workers that are about to end belong to the end, not to a suspension.
	if suspended := conditionOf(status.Conditions, v1alpha1.ConditionSuspended); suspended.Reason == v1alpha1.ReasonSuspending {
		suspended.Reason, suspended.Message = v1alpha1.ReasonFinished, finishedCondition.Message
		set(&status, observed, suspended)
	}
	set(&status, observed, metav1.Condition{Type: end.condition, Status: metav1.ConditionTrue, Reason: end.reason, Message: end.message})
	status.CompletionTime = new(metav1.NewTime(observed.now))
	// What is lost is so for good, and recorded as well as can be.
	for number := range status.RecordUIDs {
		if observed.shards[number] == nil {
			status.RecordUIDs[number] = ""
		}
	}
	return status
}

// maxMessage bounds the message of a condition, in bytes: with all its failures a status stays below 64 KiB.
const maxMessage = 2048

func set(status *v1alpha1.GoopStatus, observed *observation, condition metav1.Condition) {
	condition.Message = shorten(condition.Message, maxMessage)
	condition.ObservedGeneration = observed.goop.Generation
	condition.LastTransitionTime = metav1.NewTime(observed.now)
	setCondition(&status.Conditions, condition)
}

// count takes over what is recorded.
func count(status *v1alpha1.GoopStatus, observed *observation) {
	status.Desired = desiredCount(observed)
	status.Succeeded, status.Failed = observed.record.Succeeded, observed.record.Failed
	status.Failures = observed.record.Failures
	status.ExitCode = nil
	if len(observed.record.Finished) > 0 {
		status.ExitCode = new(observed.record.ExitCode)
	}
	if started := observed.record.Started; !started.IsZero() {
		status.StartTime = new(metav1.NewTime(started))
	}
}

// finishedCondition is the condition Running when the work is over.
var finishedCondition = metav1.Condition{
	Type: v1alpha1.ConditionRunning, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonFinished, Message: "the work is over",
}

// hostAccessMessage says why a Goop that asks for host access has no pods.
const hostAccessMessage = "spec.host asks for access to nodes, and the operator was started without --allow-host-access"

// runningCondition decides the condition Running. Its reason is what a user should know first.
func runningCondition(observed *observation) metav1.Condition {
	if isConcluded(observed.goop) {
		return conditionOf(observed.goop.Status.Conditions, v1alpha1.ConditionRunning)
	}
	if !observed.goop.DeletionTimestamp.IsZero() {
		return deletionCondition(observed)
	}
	running := metav1.Condition{Type: v1alpha1.ConditionRunning, Status: metav1.ConditionFalse}
	var tooMany *plan.TooManyRoundsError
	switch {
	// 1. Nothing will run.
	case observed.goop.Ended():
		return finishedCondition
	case observed.hostRejected:
		running.Reason, running.Message = v1alpha1.ReasonHostAccessRefused, hostAccessMessage
		return running
	// 2. Something is in the way. Other workers may be at work.
	case observed.failure != nil:
		running.Reason, running.Message = observed.failure.reason, observed.failure.message
	// 3. Nothing is to run.
	case observed.goop.Spec.Suspend:
		suspended := suspendedCondition(observed)
		running.Reason, running.Message = suspended.Reason, suspended.Message
		return running
	// 4. Something is to run, and cannot. Other workers may be at work.
	case errors.Is(observed.unplanned, plan.ErrNoEligibleNodes):
		running.Reason = v1alpha1.ReasonNoEligibleNodes
		running.Message = "no node has the labels of spec.nodeSelector and only taints that spec.tolerations allow; the work begins when there is one"
	case errors.As(observed.unplanned, &tooMany):
		running.Reason = v1alpha1.ReasonTooManyRounds
		running.Message = tooMany.Error() + "; lower spec.jobCount in another Goop, or add nodes"
	case observed.work.notStarted != nil:
		running.Reason, running.Message = observed.work.notStarted.reason, observed.work.notStarted.message
	case observed.noPods:
		running.Reason = v1alpha1.ReasonPodsNotCreated
		running.Message = "there is work to be done, and no pod is created for it: the Events of the DaemonSets say why " +
			"(kubectl events --for daemonset/" + observed.goop.Name + "-0), for instance a quota or the namespace's Pod Security level"
	// 5. All is as it should be. No numbers in the message: each would be a write.
	default:
		running.Status = metav1.ConditionTrue
		running.Reason, running.Message = v1alpha1.ReasonWorking, "workers are at work, or are about to be"
		return running
	}
	if observed.work.running > 0 {
		running.Status = metav1.ConditionTrue
	}
	return running
}

// deletionCondition is the condition Running of a Goop that is being deleted: what the deletion waits for.
func deletionCondition(observed *observation) metav1.Condition {
	running := metav1.Condition{Type: v1alpha1.ConditionRunning, Status: metav1.ConditionFalse}
	switch {
	case observed.failure != nil:
		running.Reason, running.Message = observed.failure.reason, "the cleanup cannot run: "+observed.failure.message
	case observed.cleaning.notStarted != nil:
		running.Reason, running.Message = observed.cleaning.notStarted.reason, "the cleanup cannot run: "+observed.cleaning.notStarted.message
	default:
		running.Reason = v1alpha1.ReasonCleaningUp
		running.Message = "the Goop is being deleted: its workers end, and then cleanupCmd runs on the nodes where they were"
	}
	if observed.work.running > 0 {
		running.Status = metav1.ConditionTrue
	}
	return running
}

// isConcluded tells whether the status says how the cleanup went.
func isConcluded(goop *v1alpha1.Goop) bool {
	reason := conditionOf(goop.Status.Conditions, v1alpha1.ConditionRunning).Reason
	return reason == v1alpha1.ReasonCleanedUp || reason == v1alpha1.ReasonCleanupIncomplete
}

// lacksPods tells whether work is to be done and nothing is at work: for a moment after each start that is so.
func lacksPods(observed *observation) bool {
	return !observed.stopping && observed.failure == nil && observed.unplanned == nil && observed.unreadable == "" &&
		observed.lost == "" &&
		observed.work.unfinished == 0 && len(observed.work.ended) == 0 && !allRecorded(observed)
}

// suspendedCondition decides the condition Suspended; nil if it is to stay as it is.
func suspendedCondition(observed *observation) *metav1.Condition {
	suspended := &metav1.Condition{Type: v1alpha1.ConditionSuspended, Status: metav1.ConditionFalse}
	switch {
	case observed.goop.Ended() || !observed.goop.DeletionTimestamp.IsZero() || !observed.complete:
		return nil
	case observed.goop.Spec.Suspend && observed.work.unfinished > 0:
		suspended.Reason, suspended.Message = v1alpha1.ReasonSuspending, "waiting for workers that are not finished to end"
	case observed.goop.Spec.Suspend:
		suspended.Status = metav1.ConditionTrue
		suspended.Reason, suspended.Message = v1alpha1.ReasonSuspended, "suspended: no unfinished worker is left"
	case apimeta.FindStatusCondition(observed.goop.Status.Conditions, v1alpha1.ConditionSuspended) != nil:
		suspended.Reason, suspended.Message = v1alpha1.ReasonResumed, "resumed: what was not finished begins anew"
	default:
		return nil
	}
	return suspended
}

// transitions are what is new in a status and worth an Event.
func transitions(before, after v1alpha1.GoopStatus) []transition {
	var all []transition
	was := func(kind string) metav1.Condition { return conditionOf(before.Conditions, kind) }
	is := func(kind string) metav1.Condition { return conditionOf(after.Conditions, kind) }
	became := func(kind, eventType string) {
		if is(kind).Status == metav1.ConditionTrue && was(kind).Status != metav1.ConditionTrue {
			all = append(all, transition{eventType, is(kind).Reason, is(kind).Message})
		}
	}
	running := is(v1alpha1.ConditionRunning)
	if eventType, announced := runningEvents[running.Reason]; announced && running.Reason != was(v1alpha1.ConditionRunning).Reason {
		all = append(all, transition{eventType, running.Reason, running.Message})
	}
	became(v1alpha1.ConditionSuspended, corev1.EventTypeNormal)
	became(v1alpha1.ConditionComplete, corev1.EventTypeNormal)
	became(v1alpha1.ConditionFailed, corev1.EventTypeWarning)
	return all
}

// runningEvents are the types of the Events by which a new reason of the condition Running is announced. Those that other
// conditions announce are not among them.
var runningEvents = map[string]string{
	v1alpha1.ReasonWorking:           corev1.EventTypeNormal,
	v1alpha1.ReasonCleaningUp:        corev1.EventTypeNormal,
	v1alpha1.ReasonCleanedUp:         corev1.EventTypeNormal,
	v1alpha1.ReasonCleanupIncomplete: corev1.EventTypeWarning,
	v1alpha1.ReasonNoEligibleNodes:   corev1.EventTypeWarning,
	v1alpha1.ReasonTooManyRounds:     corev1.EventTypeWarning,
	v1alpha1.ReasonHostAccessRefused: corev1.EventTypeWarning,
	v1alpha1.ReasonNameConflict:      corev1.EventTypeWarning,
	v1alpha1.ReasonImageNotPulled:    corev1.EventTypeWarning,
	v1alpha1.ReasonPodsNotCreated:    corev1.EventTypeWarning,
	v1alpha1.ReasonUnschedulable:     corev1.EventTypeWarning,
	v1alpha1.ReasonWorkersNotStarted: corev1.EventTypeWarning,
	v1alpha1.ReasonRecordUnreadable:  corev1.EventTypeWarning,
	v1alpha1.ReasonApplyFailed:       corev1.EventTypeWarning,
	v1alpha1.ReasonAPIError:          corev1.EventTypeWarning,
}
