package controller

import (
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

// desiredCount is the desired number of workers.
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

// desiredStatus computes the status from the observation. The counts do not change after the end of the work, because the
// record may have been deleted.
func desiredStatus(observed *observation) v1alpha1.GoopStatus {
	goop := observed.goop
	status := *goop.Status.DeepCopy()
	status.ObservedGeneration = goop.Generation
	if observed.complete {
		status.Running = int32(observed.work.running)
		// After the end of the work only a cleanup needs the record.
		if !goop.Ended() || !goop.DeletionTimestamp.IsZero() || len(goop.Spec.CleanupCmd) > 0 {
			status.RecordUIDs = observed.uids
		}
		if !goop.Ended() && observed.damage == nil {
			count(&status, observed)
		}
	}
	set(&status, observed, runningCondition(observed))
	if suspended := suspendedCondition(observed); suspended != nil {
		set(&status, observed, *suspended)
	}
	if !goop.DeletionTimestamp.IsZero() && hasFinalizer(goop) && status.CleanupStartTime == nil {
		status.CleanupStartTime = new(metav1.NewTime(observed.now))
	}
	observeGeneration(status.Conditions, goop.Generation,
		v1alpha1.ConditionRunning, v1alpha1.ConditionSuspended, v1alpha1.ConditionComplete, v1alpha1.ConditionFailed)
	return status
}

// endStatus is the status at the end of the work.
func endStatus(observed *observation, end ending) v1alpha1.GoopStatus {
	status := desiredStatus(observed)
	set(&status, observed, finishedCondition)
	// If workers are still terminating, the reason is the end of the work, not a suspension.
	if suspended := conditionOf(status.Conditions, v1alpha1.ConditionSuspended); suspended.Reason == v1alpha1.ReasonSuspending {
		suspended.Reason, suspended.Message = v1alpha1.ReasonFinished, finishedCondition.Message
		set(&status, observed, suspended)
	}
	set(&status, observed, metav1.Condition{Type: end.condition, Status: metav1.ConditionTrue, Reason: end.reason, Message: end.message})
	status.CompletionTime = new(metav1.NewTime(observed.now))
	// A lost shard cannot come back, and what could be recorded is recorded: its uid is removed.
	for number := range status.RecordUIDs {
		if observed.shards[number] == nil {
			status.RecordUIDs[number] = ""
		}
	}
	return status
}

func set(status *v1alpha1.GoopStatus, observed *observation, condition metav1.Condition) {
	condition.ObservedGeneration = observed.goop.Generation
	condition.LastTransitionTime = metav1.NewTime(observed.now)
	setCondition(&status.Conditions, condition)
}

// count copies the counts from the record.
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

// finishedCondition is the condition Running after the end of the work.
var finishedCondition = metav1.Condition{
	Type: v1alpha1.ConditionRunning, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonFinished, Message: "the work has ended",
}

// hostAccessMessage explains why a Goop that requests host access has no pods.
const hostAccessMessage = "spec.host requests access to nodes, and the operator was started without --allow-host-access"

// runningCondition computes the condition Running. Its reason is what a user needs to know first.
func runningCondition(observed *observation) metav1.Condition {
	if isConcluded(observed.goop) {
		return concludedCondition(observed)
	}
	if !observed.goop.DeletionTimestamp.IsZero() {
		return deletionCondition(observed)
	}
	running := metav1.Condition{Type: v1alpha1.ConditionRunning, Status: metav1.ConditionFalse}
	var tooMany *plan.TooManyRoundsError
	switch {
	// 1. No work will run.
	case observed.goop.Ended():
		return endedCondition(observed)
	case observed.hostRejected:
		running.Reason, running.Message = v1alpha1.ReasonHostAccessNotAllowed, hostAccessMessage
		if observed.failure != nil && observed.failure.reason != running.Reason {
			running.Message += "; " + observed.failure.message
		}
		return running
	// 2. A request failed. Other workers may be running.
	case observed.failure != nil:
		running.Reason, running.Message = observed.failure.reason, observed.failure.message
	// 3. The Goop is suspended.
	case observed.goop.Spec.Suspend:
		suspended := suspendedCondition(observed)
		running.Reason, running.Message = suspended.Reason, suspended.Message
		return running
	// 4. Workers cannot start. Other workers may be running.
	case errors.Is(observed.unplanned, plan.ErrNoEligibleNodes):
		running.Reason = v1alpha1.ReasonNoEligibleNodes
		running.Message = "no node matches spec.nodeSelector and has only taints that spec.tolerations tolerate; workers start when there is one"
	case errors.As(observed.unplanned, &tooMany):
		running.Reason = v1alpha1.ReasonTooManyRounds
		running.Message = tooMany.Error() + "; lower spec.jobCount in another Goop, or add nodes"
	case observed.work.notStarted != nil:
		running.Reason, running.Message = observed.work.notStarted.reason, observed.work.notStarted.message
	case observed.noPods:
		running.Reason = v1alpha1.ReasonPodsNotCreated
		running.Message = noPodsMessage("a worker should run", observed.goop.Name+"-0")
	// 5. Everything is as desired. The message has no counts: each change of the message would be a write.
	default:
		running.Status = metav1.ConditionTrue
		running.Reason, running.Message = v1alpha1.ReasonWorking, "workers are running, or are about to start"
		return running
	}
	if observed.work.running > 0 {
		running.Status = metav1.ConditionTrue
	}
	return running
}

// endedCondition is the condition Running after the end of the work, with why work still runs, if some does.
func endedCondition(observed *observation) metav1.Condition {
	running := finishedCondition
	if failure := observed.failure; failure != nil && failure.reason != v1alpha1.ReasonAPIError {
		running.Message += ", and some workers could not be terminated: " + failure.message
	}
	return running
}

// deletionCondition is the condition Running of a Goop that is being deleted: what the deletion waits for.
func deletionCondition(observed *observation) metav1.Condition {
	running := metav1.Condition{Type: v1alpha1.ConditionRunning, Status: metav1.ConditionFalse}
	switch {
	case observed.failure != nil && !hasFinalizer(observed.goop):
		running.Reason, running.Message = observed.failure.reason, "the work cannot be terminated: "+observed.failure.message
	case !hasFinalizer(observed.goop):
		running.Reason = v1alpha1.ReasonDeleting
		running.Message = "the Goop is being deleted: its workers are terminated, none starts again, and another controller's finalizer blocks the deletion"
	case observed.failure != nil:
		running.Reason, running.Message = observed.failure.reason, "the cleanup cannot run: "+observed.failure.message
	case observed.cleaning.notStarted != nil:
		running.Reason, running.Message = observed.cleaning.notStarted.reason, "the cleanup cannot run: "+observed.cleaning.notStarted.message
	case observed.noPods:
		running.Reason = v1alpha1.ReasonPodsNotCreated
		running.Message = noPodsMessage("the cleanup should run", observed.cleanup.Name)
	default:
		running.Reason = v1alpha1.ReasonCleaningUp
		running.Message = "the Goop is being deleted: its workers are terminated, and then cleanupCmd runs on the nodes where they ran"
	}
	if observed.work.running > 0 {
		running.Status = metav1.ConditionTrue
	}
	return running
}

// notReleased separates the outcome of the cleanup from the reason why the Goop still exists.
const notReleased = "; the Goop still exists: "

// concludedCondition is the condition Running after the end of the cleanup.
func concludedCondition(observed *observation) metav1.Condition {
	running := conditionOf(observed.goop.Status.Conditions, v1alpha1.ConditionRunning)
	outcome, _, before := strings.Cut(running.Message, notReleased)
	switch {
	case observed.failure == nil:
		running.Message = outcome
	// The message of a transient error may differ with each retry, so the first one stays.
	case !before || observed.failure.reason != v1alpha1.ReasonAPIError:
		running.Message = outcome + notReleased + observed.failure.message
	}
	return running
}

// noPodsMessage states that no pod is created, and where to find the reason.
func noPodsMessage(what, daemonSet string) string {
	return what + ", and no pod is created for it: the Events of the DaemonSets say why (kubectl events --for daemonset/" +
		daemonSet + "), for example a quota or the Pod Security Standard of the namespace"
}

// lacksPods reports whether work has to be done and there is no pod for it. That is the case for a moment after each
// start.
func lacksPods(observed *observation) bool {
	return !observed.stopping && observed.failure == nil && observed.unplanned == nil && observed.damage == nil &&
		observed.work.unfinished == 0 && len(observed.work.ended) == 0 && !allRecorded(observed)
}

// suspendedCondition computes the condition Suspended; nil if it does not change.
func suspendedCondition(observed *observation) *metav1.Condition {
	suspended := &metav1.Condition{Type: v1alpha1.ConditionSuspended, Status: metav1.ConditionFalse}
	switch {
	case isOver(observed.goop) || !observed.complete:
		return nil
	case observed.goop.Spec.Suspend && observed.work.unfinished > 0:
		suspended.Reason, suspended.Message = v1alpha1.ReasonSuspending, "waiting for unfinished workers to terminate"
	case observed.goop.Spec.Suspend && mayCreatePods(observed):
		suspended.Reason, suspended.Message = v1alpha1.ReasonSuspending, "waiting for the DaemonSet controller to observe the suspension"
	case observed.goop.Spec.Suspend:
		suspended.Status = metav1.ConditionTrue
		suspended.Reason, suspended.Message = v1alpha1.ReasonSuspended, "suspended: no unfinished worker exists"
	case isStarted(observed) && apimeta.FindStatusCondition(observed.goop.Status.Conditions, v1alpha1.ConditionSuspended) != nil:
		suspended.Reason, suspended.Message = v1alpha1.ReasonResumed, "resumed: unfinished workers start again"
	default:
		return nil
	}
	return suspended
}

// becomesSuspended reports whether a status is the first one with Suspended=True, which no pod may contradict.
func becomesSuspended(before, after v1alpha1.GoopStatus) bool {
	return apimeta.IsStatusConditionTrue(after.Conditions, v1alpha1.ConditionSuspended) &&
		!apimeta.IsStatusConditionTrue(before.Conditions, v1alpha1.ConditionSuspended)
}

// transitions returns the changes between two statuses. A change without an Event type is only logged.
func transitions(before, after v1alpha1.GoopStatus) []transition {
	var all []transition
	was := func(kind string) metav1.Condition { return conditionOf(before.Conditions, kind) }
	is := func(kind string) metav1.Condition { return conditionOf(after.Conditions, kind) }
	became := func(kind, eventType string) {
		if is(kind).Status == metav1.ConditionTrue && was(kind).Status != metav1.ConditionTrue {
			all = append(all, transition{eventType, is(kind)})
		}
	}
	running := is(v1alpha1.ConditionRunning)
	if running.Reason != was(v1alpha1.ConditionRunning).Reason {
		all = append(all, transition{runningEvents[running.Reason], running})
	}
	became(v1alpha1.ConditionSuspended, corev1.EventTypeNormal)
	became(v1alpha1.ConditionComplete, corev1.EventTypeNormal)
	became(v1alpha1.ConditionFailed, corev1.EventTypeWarning)
	return all
}

// runningEvents has the Event type for each reason of the condition Running. Reasons that another condition announces are
// missing: they are only logged.
var runningEvents = map[string]string{
	v1alpha1.ReasonWorking:              corev1.EventTypeNormal,
	v1alpha1.ReasonCleaningUp:           corev1.EventTypeNormal,
	v1alpha1.ReasonCleanedUp:            corev1.EventTypeNormal,
	v1alpha1.ReasonCleanupIncomplete:    corev1.EventTypeWarning,
	v1alpha1.ReasonNoEligibleNodes:      corev1.EventTypeWarning,
	v1alpha1.ReasonTooManyRounds:        corev1.EventTypeWarning,
	v1alpha1.ReasonHostAccessNotAllowed: corev1.EventTypeWarning,
	v1alpha1.ReasonNameConflict:         corev1.EventTypeWarning,
	v1alpha1.ReasonImageNotPulled:       corev1.EventTypeWarning,
	v1alpha1.ReasonPodsNotCreated:       corev1.EventTypeWarning,
	v1alpha1.ReasonUnschedulable:        corev1.EventTypeWarning,
	v1alpha1.ReasonWorkersNotStarted:    corev1.EventTypeWarning,
	v1alpha1.ReasonRecordUnreadable:     corev1.EventTypeWarning,
	v1alpha1.ReasonApplyFailed:          corev1.EventTypeWarning,
	v1alpha1.ReasonAPIError:             corev1.EventTypeWarning,
}
