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

// fluxObservation is what one reconciliation of a Flux observed. It is all that the status is computed from.
type fluxObservation struct {
	// plan is what was to be done, with the reason if there can be no FluxSetup and with the end of the Flux.
	plan
	// now is when it was observed.
	now time.Time
	// setup is the FluxSetup of the Flux, as it is after this reconciliation; nil if there is none.
	setup *v1alpha1.FluxSetup
	// unread: a read has failed, so that nothing is known but the failure.
	unread bool
	// failure is why the FluxSetup could not be applied, or not be read; nil if it could.
	failure *failure
}

// fluxStatus is the status that the observation amounts to. What it takes from the old status is what must not change
// any more: the end, and the cause of a restart that is still under way.
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
		setNumbers(&status, observed)
		if end != nil {
			status.CompletionTime = &now
		}
	}
	if end != nil {
		set(metav1.Condition{Type: end.condition, Status: metav1.ConditionTrue, Reason: end.reason, Message: end.message})
		status.ExitCode = end.exitCode
	}
	for i := range status.Conditions {
		status.Conditions[i].ObservedGeneration = flux.Generation
	}
	return status
}

// setNumbers copies what the FluxSetup says in numbers. If it was deleted, what it said last stays.
func setNumbers(status *v1alpha1.FluxStatus, observed fluxObservation) {
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

// onlyReadiness tells whether nothing but the number of ready ranks differs.
func onlyReadiness(status, before v1alpha1.FluxStatus) bool {
	status.ReadyRanks = before.ReadyRanks
	return apiequality.Semantic.DeepEqual(status, before)
}

// setupReadyCondition decides the condition SetupReady: what the FluxSetup says of Accepted and Configured.
func setupReadyCondition(observed fluxObservation) metav1.Condition {
	ready := metav1.Condition{Type: v1alpha1.ConditionSetupReady, Status: metav1.ConditionFalse}
	switch setup := observed.setup; {
	// 1. It could not be read, or not be applied.
	case observed.failure != nil:
		ready.Reason, ready.Message = observed.failure.reason, observed.failure.message
	// 2. There is none, and cannot be one now.
	case observed.obstacle != nil:
		ready.Reason, ready.Message = observed.obstacle.reason, observed.obstacle.message
	case setup == nil:
		ready.Reason, ready.Message = v1alpha1.ReasonStarting, "there is no FluxSetup yet"
	// 3. No brokers are desired.
	case setup.Spec.Suspend && cleared(setup):
		ready.Reason, ready.Message = v1alpha1.ReasonSuspended, "suspended: nothing is left"
	case setup.Spec.Suspend && current(setup) && needsAttention(conditionOf(setup.Status.Conditions, v1alpha1.ConditionConfigured)):
		said := conditionOf(setup.Status.Conditions, v1alpha1.ConditionConfigured)
		ready.Reason, ready.Message = said.Reason, said.Message
	case setup.Spec.Suspend:
		ready.Reason, ready.Message = v1alpha1.ReasonSuspending, "waiting for all pods to end"
	// 4. It was not reconciled yet, or speaks of an earlier attempt.
	case !current(setup):
		ready.Reason, ready.Message = v1alpha1.ReasonStarting, fmt.Sprintf("attempt %d starts", setup.Spec.Attempt)
	// 5. It speaks for itself.
	default:
		said := firstNotTrue(setup.Status.Conditions, v1alpha1.ConditionAccepted, v1alpha1.ConditionConfigured)
		ready.Status, ready.Reason, ready.Message = said.Status, said.Reason, said.Message
	}
	return ready
}

// firstNotTrue is the first of the conditions that is not True, or else the last. One that is not there yet is
// False, with the reason Starting.
func firstNotTrue(conditions []metav1.Condition, conditionTypes ...string) metav1.Condition {
	var said metav1.Condition
	for _, conditionType := range conditionTypes {
		said = ptr.Deref(apimeta.FindStatusCondition(conditions, conditionType), metav1.Condition{
			Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonStarting, Message: "it has just begun",
		})
		if said.Status != metav1.ConditionTrue {
			break
		}
	}
	return said
}

// cleared tells whether a suspended FluxSetup has nothing left: no pod, and no object.
func cleared(setup *v1alpha1.FluxSetup) bool {
	configured := conditionOf(setup.Status.Conditions, v1alpha1.ConditionConfigured)
	return current(setup) && configured.Status == metav1.ConditionFalse && configured.Reason == v1alpha1.ReasonSuspended
}

// runningCondition decides the condition Running. Its reason, if it is False, is what a user waits for.
func runningCondition(observed fluxObservation, ready, restarting metav1.Condition) metav1.Condition {
	running := metav1.Condition{Type: v1alpha1.ConditionRunning, Status: metav1.ConditionFalse}
	switch setup := observed.setup; {
	case observed.end != nil:
		running.Reason, running.Message = v1alpha1.ReasonFinished, "the work is over"
	case setup == nil || setup.Spec.Suspend:
		running.Reason, running.Message = ready.Reason, ready.Message
	case quorum(setup):
		running.Status = metav1.ConditionTrue
		running.Reason, running.Message = v1alpha1.ReasonQuorumReached, "enough brokers have found each other, and the command runs"
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
		said := firstNotTrue(setup.Status.Conditions, v1alpha1.ConditionQuorumReached)
		running.Reason, running.Message = said.Reason, said.Message
	}
	return running
}

// quorum tells whether the command of the present attempt runs.
func quorum(setup *v1alpha1.FluxSetup) bool {
	return current(setup) && failedCondition(setup) == nil &&
		apimeta.IsStatusConditionTrue(setup.Status.Conditions, v1alpha1.ConditionQuorumReached)
}

// suspendedCondition decides the condition Suspended.
func suspendedCondition(flux *v1alpha1.Flux, observed fluxObservation, ready metav1.Condition) metav1.Condition {
	suspended := metav1.Condition{Type: v1alpha1.ConditionSuspended, Status: metav1.ConditionFalse}
	switch {
	case !flux.Spec.Suspend:
		suspended.Reason, suspended.Message = v1alpha1.ReasonNotSuspended, "suspend is not set"
	case observed.end != nil:
		suspended.Reason, suspended.Message = v1alpha1.ReasonFinished, "the work is over"
	case ready.Reason == v1alpha1.ReasonSuspended:
		suspended.Status = metav1.ConditionTrue
		suspended.Reason, suspended.Message = ready.Reason, ready.Message
	default:
		suspended.Reason, suspended.Message = v1alpha1.ReasonSuspending, ready.Message
	}
	return suspended
}

// restartingCondition decides the condition Restarting. It keeps its message until the next quorum: the FluxSetup does
// not name the failure any more once the next attempt has started.
func restartingCondition(flux *v1alpha1.Flux, observed fluxObservation) metav1.Condition {
	restarting := metav1.Condition{
		Type: v1alpha1.ConditionRestarting, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonNotRestarting, Message: "no attempt starts because another one failed",
	}
	setup := observed.setup
	if setup == nil || observed.end != nil || setup.Spec.Suspend || quorum(setup) {
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

// fluxTransitions are the changes from one status to the next that are worth an Event. What every Flux goes through
// before its work begins is a condition, but not an Event.
func fluxTransitions(before, after v1alpha1.FluxStatus) []transition {
	var all []transition
	was := func(conditionType string) metav1.Condition { return conditionOf(before.Conditions, conditionType) }
	is := func(conditionType string) metav1.Condition { return conditionOf(after.Conditions, conditionType) }
	if ready := is(v1alpha1.ConditionSetupReady); needsAttention(ready) && ready.Reason != was(v1alpha1.ConditionSetupReady).Reason {
		all = append(all, transition{corev1.EventTypeWarning, ready.Reason, ready.Message})
	}
	if after.Restarts > before.Restarts {
		all = append(all, transition{corev1.EventTypeWarning, v1alpha1.ReasonRestarting, is(v1alpha1.ConditionRestarting).Message})
	}
	began := func(conditionType, eventType, reason string) {
		if is(conditionType).Status == metav1.ConditionTrue && was(conditionType).Status != metav1.ConditionTrue {
			all = append(all, transition{eventType, reason, is(conditionType).Message})
		}
	}
	began(v1alpha1.ConditionRunning, corev1.EventTypeNormal, v1alpha1.ConditionRunning)
	began(v1alpha1.ConditionSuspended, corev1.EventTypeNormal, v1alpha1.ReasonSuspended)
	began(v1alpha1.ConditionComplete, corev1.EventTypeNormal, is(v1alpha1.ConditionComplete).Reason)
	began(v1alpha1.ConditionFailed, corev1.EventTypeWarning, is(v1alpha1.ConditionFailed).Reason)
	return all
}

// needsAttention tells what a user should look at from what passes by itself.
func needsAttention(ready metav1.Condition) bool {
	switch ready.Reason {
	case v1alpha1.ReasonNameConflict, v1alpha1.ReasonApplyFailed, v1alpha1.ReasonAPIError, v1alpha1.ReasonConfigLost:
		return ready.Status != metav1.ConditionTrue
	}
	return false
}
