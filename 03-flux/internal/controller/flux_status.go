package controller

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// fluxObservation is what one reconciliation of a Flux observed. The status is computed from it alone.
type fluxObservation struct {
	// plan is what the reconciliation decided to do, including what prevents a FluxSetup, and the end of the Flux if the
	// status does not say so yet.
	plan
	// now is the time of the observation.
	now time.Time
	// setup is the FluxSetup of the Flux after this reconciliation; nil if there is none.
	setup *v1alpha1.FluxSetup
	// unread: a read failed, so that only the failure is known.
	unread bool
	// failure is why the FluxSetup could not be applied or read; nil if there was no failure.
	failure *failure
}

// fluxStatus computes the status from the observation. After a failed read it changes only SetupReady; after the end of the
// Flux, only that and a late result (see lateEnding). Otherwise it keeps what was copied from a FluxSetup that was deleted, and
// the cause of a restart until the quorum is reached again.
func fluxStatus(flux *v1alpha1.Flux, observed fluxObservation) v1alpha1.FluxStatus {
	now := metav1.NewTime(observed.now)
	status := *flux.Status.DeepCopy()
	status.ObservedGeneration = flux.Generation
	set := func(condition metav1.Condition) {
		condition.ObservedGeneration, condition.LastTransitionTime = flux.Generation, now
		setCondition(&status.Conditions, condition)
	}
	ready := setupReadyCondition(observed)
	set(ready)
	end := observed.end
	switch {
	case observed.unread:
		return status
	case ended(flux):
		end = lateEnding(flux, observed.setup)
	default:
		restarting := restartingCondition(flux, observed)
		set(runningCondition(observed, ready, restarting))
		set(suspendedCondition(flux, observed, ready))
		set(restarting)
		copyFromSetup(&status, observed)
		if end != nil {
			status.CompletionTime = &now
		}
	}
	if end != nil {
		set(metav1.Condition{Type: end.condition, Status: metav1.ConditionTrue, Reason: end.reason, Message: end.message})
		status.ExitCode = end.exitCode
	}
	observeGeneration(status.Conditions, flux.Generation, v1alpha1.ConditionSetupReady, v1alpha1.ConditionRunning,
		v1alpha1.ConditionSuspended, v1alpha1.ConditionRestarting, v1alpha1.ConditionComplete, v1alpha1.ConditionFailed)
	return status
}

// terminatingStatus is the status of a Flux that is being deleted and that another controller's finalizer keeps. Nothing
// else of it changes any more.
func terminatingStatus(flux *v1alpha1.Flux, failure *failure, now time.Time) v1alpha1.FluxStatus {
	status := *flux.Status.DeepCopy()
	status.ObservedGeneration, status.ReadyRanks = flux.Generation, 0
	running := metav1.Condition{
		Type: v1alpha1.ConditionRunning, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonDeleting,
		Message: "the Flux is being deleted: its brokers are terminated, none starts again, and another controller's finalizer blocks the deletion",
	}
	if failure != nil {
		running.Status = conditionOf(status.Conditions, v1alpha1.ConditionRunning).Status
		running.Reason, running.Message = failure.reason, "the work cannot be terminated: "+failure.message
	}
	running.ObservedGeneration, running.LastTransitionTime = flux.Generation, metav1.NewTime(now)
	setCondition(&status.Conditions, running)
	return status
}

// copyFromSetup copies the reference, the numbers and the start time. If the FluxSetup was deleted, the last values stay, except
// ReadyRanks, which is 0.
func copyFromSetup(status *v1alpha1.FluxStatus, observed fluxObservation) {
	status.ReadyRanks = 0
	if setup := observed.setup; setup != nil {
		status.SetupRef = &v1alpha1.SetupReference{Name: setup.Name, UID: string(setup.UID)}
		status.Restarts = setup.Spec.Restarts
		status.ExitCode, status.StartTime = nil, nil
		if current(setup) {
			status.ReadyRanks = setup.Status.ReadyRanks
			status.ExitCode = setup.Status.ExitCode
			if launch := setup.Spec.Launch; launch != nil && launch.Attempt == setup.Spec.Attempt {
				status.StartTime = launch.Time.DeepCopy()
			}
		}
	}
	if observed.end != nil {
		status.ReadyRanks = 0
	}
}

// onlyReadiness reports whether nothing but the number of ready ranks differs.
func onlyReadiness(status, before v1alpha1.FluxStatus) bool {
	status.ReadyRanks = before.ReadyRanks
	return apiequality.Semantic.DeepEqual(status, before)
}

// setupReadyCondition computes the condition SetupReady from Accepted and Configured of the FluxSetup.
func setupReadyCondition(observed fluxObservation) metav1.Condition {
	ready := metav1.Condition{Type: v1alpha1.ConditionSetupReady, Status: metav1.ConditionFalse}
	switch setup := observed.setup; {
	// 1. The FluxSetup could not be read or applied.
	case observed.failure != nil:
		ready.Reason, ready.Message = observed.failure.reason, observed.failure.message
	// 2. The FluxSetup is being deleted, and its running Job cannot be deleted.
	case setup != nil && !setup.DeletionTimestamp.IsZero() && needsAttention(conditionOf(setup.Status.Conditions, v1alpha1.ConditionConfigured)):
		configured := conditionOf(setup.Status.Conditions, v1alpha1.ConditionConfigured)
		ready.Reason, ready.Message = configured.Reason, configured.Message
	// 3. There is no FluxSetup, and an obstacle prevents one.
	case observed.obstacle != nil:
		ready.Reason, ready.Message = observed.obstacle.reason, observed.obstacle.message
	case setup == nil:
		ready.Reason, ready.Message = v1alpha1.ReasonStarting, "there is no FluxSetup yet"
	// 4. The Flux is suspended: no brokers are desired.
	case setup.Spec.Suspend && cleared(setup):
		ready.Reason, ready.Message = v1alpha1.ReasonSuspended, "suspended: all dependents are deleted"
	case setup.Spec.Suspend && current(setup) && needsAttention(conditionOf(setup.Status.Conditions, v1alpha1.ConditionConfigured)):
		configured := conditionOf(setup.Status.Conditions, v1alpha1.ConditionConfigured)
		ready.Reason, ready.Message = configured.Reason, configured.Message
	case setup.Spec.Suspend:
		ready.Reason, ready.Message = v1alpha1.ReasonSuspending, "waiting for all pods to terminate"
	// 5. The FluxSetup was not reconciled yet, or its status is about an earlier attempt.
	case !current(setup):
		ready.Reason, ready.Message = v1alpha1.ReasonStarting, fmt.Sprintf("attempt %d starts", setup.Spec.Attempt)
	// 6. The status of the FluxSetup is up to date.
	default:
		first := firstNotTrue(setup.Status.Conditions, v1alpha1.ConditionAccepted, v1alpha1.ConditionConfigured)
		ready.Status, ready.Reason, ready.Message = first.Status, first.Reason, first.Message
	}
	return ready
}

// firstNotTrue is the first of the conditions that is not True, or else the last one. A missing condition is False with
// the reason Starting.
func firstNotTrue(conditions []metav1.Condition, conditionTypes ...string) metav1.Condition {
	var found metav1.Condition
	for _, conditionType := range conditionTypes {
		found = ptr.Deref(apimeta.FindStatusCondition(conditions, conditionType), metav1.Condition{
			Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonStarting, Message: "the FluxSetup has not reported " + conditionType + " yet",
		})
		if found.Status != metav1.ConditionTrue {
			break
		}
	}
	return found
}

// cleared reports whether a suspended FluxSetup has neither pods nor other dependents left.
func cleared(setup *v1alpha1.FluxSetup) bool {
	configured := conditionOf(setup.Status.Conditions, v1alpha1.ConditionConfigured)
	return current(setup) && configured.Status == metav1.ConditionFalse && configured.Reason == v1alpha1.ReasonSuspended
}

// runningCondition computes the condition Running. If it is False, its reason is what the user waits for.
func runningCondition(observed fluxObservation, ready, restarting metav1.Condition) metav1.Condition {
	running := metav1.Condition{Type: v1alpha1.ConditionRunning, Status: metav1.ConditionFalse}
	switch setup := observed.setup; {
	case observed.end != nil:
		running.Reason, running.Message = v1alpha1.ReasonFinished, "the work has ended"
	case setup == nil || setup.Spec.Suspend:
		running.Reason, running.Message = ready.Reason, ready.Message
	case commandRuns(setup):
		running.Status = metav1.ConditionTrue
		running.Reason, running.Message = v1alpha1.ReasonQuorumReached, "enough brokers are connected, and the command runs"
	case needsAttention(ready):
		running.Reason, running.Message = ready.Reason, ready.Message
	case observed.backOff > 0:
		running.Reason = v1alpha1.ReasonRestarting
		running.Message = fmt.Sprintf("the next attempt starts %v after the start of the one that failed", observed.backOff)
	case restarting.Status == metav1.ConditionTrue:
		running.Reason, running.Message = v1alpha1.ReasonRestarting, "waiting for the quorum after a failure"
	case ready.Status != metav1.ConditionTrue:
		running.Reason, running.Message = ready.Reason, ready.Message
	default:
		first := firstNotTrue(setup.Status.Conditions, v1alpha1.ConditionQuorumReached)
		running.Reason, running.Message = first.Reason, first.Message
	}
	return running
}

// commandRuns reports whether the command of the current attempt runs: the quorum is reached, and the attempt has not failed.
func commandRuns(setup *v1alpha1.FluxSetup) bool {
	return current(setup) && failedCondition(setup) == nil &&
		apimeta.IsStatusConditionTrue(setup.Status.Conditions, v1alpha1.ConditionQuorumReached)
}

// suspendedCondition computes the condition Suspended.
func suspendedCondition(flux *v1alpha1.Flux, observed fluxObservation, ready metav1.Condition) metav1.Condition {
	suspended := metav1.Condition{Type: v1alpha1.ConditionSuspended, Status: metav1.ConditionFalse}
	switch {
	case !flux.Spec.Suspend:
		suspended.Reason, suspended.Message = v1alpha1.ReasonNotSuspended, "suspend is not set"
	case observed.end != nil:
		suspended.Reason, suspended.Message = v1alpha1.ReasonFinished, "the work has ended"
	case ready.Reason == v1alpha1.ReasonSuspended:
		suspended.Status = metav1.ConditionTrue
		suspended.Reason, suspended.Message = ready.Reason, ready.Message
	default:
		suspended.Reason, suspended.Message = v1alpha1.ReasonSuspending, ready.Message
	}
	return suspended
}

// restartingCondition computes the condition Restarting. It keeps its message until the next quorum, because the
// FluxSetup no longer reports the failure once the next attempt has started.
func restartingCondition(flux *v1alpha1.Flux, observed fluxObservation) metav1.Condition {
	restarting := metav1.Condition{
		Type: v1alpha1.ConditionRestarting, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonNotRestarting, Message: "no restart is in progress",
	}
	setup := observed.setup
	if setup == nil || observed.end != nil || setup.Spec.Suspend || commandRuns(setup) {
		return restarting
	}
	restarts := setup.Spec.Restarts
	if observed.backOff > 0 {
		restarts++
	}
	before := trueCondition(flux.Status.Conditions, v1alpha1.ConditionRestarting)
	failed := trueCondition(setup.Status.Conditions, v1alpha1.ConditionFailed)
	switch {
	case failed != nil && (observed.backOff > 0 || (!current(setup) && restarts > 0)):
		restarting.Message = fmt.Sprintf("restart %d of %d, because attempt %d failed with %s: %s",
			restarts, flux.Spec.MaxRestarts, setup.Status.Attempt, failed.Reason, failed.Message)
	case restarts > flux.Status.Restarts:
		restarting.Message = fmt.Sprintf("restart %d of %d", restarts, flux.Spec.MaxRestarts)
	case before != nil && restarts > 0:
		restarting.Message = before.Message
	default:
		return restarting
	}
	restarting.Status, restarting.Reason = metav1.ConditionTrue, v1alpha1.ReasonRestarting
	return restarting
}

// transitions are the changes from one status to the next that are worth an Event. The steps before the work begins are
// the same for every Flux: they are conditions, but not Events.
func transitions(before, after v1alpha1.FluxStatus) []transition {
	var all []transition
	was := func(conditionType string) metav1.Condition { return conditionOf(before.Conditions, conditionType) }
	is := func(conditionType string) metav1.Condition { return conditionOf(after.Conditions, conditionType) }
	if ready := is(v1alpha1.ConditionSetupReady); needsAttention(ready) && ready.Reason != was(v1alpha1.ConditionSetupReady).Reason {
		all = append(all, transition{corev1.EventTypeWarning, ready})
	}
	if after.Restarts > before.Restarts {
		restarting := is(v1alpha1.ConditionRestarting)
		restarting.Reason = v1alpha1.ReasonRestarting
		all = append(all, transition{corev1.EventTypeWarning, restarting})
	}
	began := func(conditionType, eventType, reason string) {
		if is(conditionType).Status == metav1.ConditionTrue && was(conditionType).Status != metav1.ConditionTrue {
			condition := is(conditionType)
			condition.Reason = reason
			all = append(all, transition{eventType, condition})
		}
	}
	began(v1alpha1.ConditionRunning, corev1.EventTypeNormal, v1alpha1.ConditionRunning)
	began(v1alpha1.ConditionSuspended, corev1.EventTypeNormal, v1alpha1.ReasonSuspended)
	began(v1alpha1.ConditionComplete, corev1.EventTypeNormal, is(v1alpha1.ConditionComplete).Reason)
	began(v1alpha1.ConditionFailed, corev1.EventTypeWarning, is(v1alpha1.ConditionFailed).Reason)
	return all
}
