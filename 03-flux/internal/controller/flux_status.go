package controller

import (
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// fluxFacts are what one pass saw of the world. They are all that the status is made from.
type fluxFacts struct {
	// setup is the FluxSetup of the Flux, as it is after this pass; nil if there is none.
	setup *v1alpha1.FluxSetup
	// missing is why there is none, or why it is not as it should be; nil if nothing is wrong with it.
	missing *obstacle
	// end is how the Flux ends in this pass; nil if it does not.
	end *ending
}

// fluxStatus is the status that the facts amount to. What it takes from the old status is what must not change
// any more: the end, and the cause of a restart that is still under way.
func fluxStatus(flux *v1alpha1.Flux, seen fluxFacts, now metav1.Time) v1alpha1.FluxStatus {
	status := *flux.Status.DeepCopy()
	status.ObservedGeneration = flux.Generation
	set := func(condition metav1.Condition) {
		condition.LastTransitionTime = now
		apimeta.SetStatusCondition(&status.Conditions, condition)
	}
	ready := setupReadyCondition(seen)
	set(ready)
	end := seen.end
	if ended(flux) {
		end = lastWordsOf(flux, seen.setup)
	} else {
		restarting := restartingCondition(flux, seen)
		set(runningCondition(seen, ready, restarting))
		set(suspendedCondition(flux, seen, ready))
		set(restarting)
		observe(&status, flux, seen)
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

// lastWordsOf is what the FluxSetup says now of an end that is written already, if it is that end: of a work that
// was ended by the operator, exit code and output come after. nil if it says nothing.
func lastWordsOf(flux *v1alpha1.Flux, setup *v1alpha1.FluxSetup) *ending {
	if setup == nil {
		return nil
	}
	end := endOf(flux, setup)
	if end == nil || conditionOf(flux.Status, end.condition).Reason != end.reason {
		return nil
	}
	return end
}

// observe takes over what the FluxSetup says in numbers. Of one that is gone, what it last said stays.
func observe(status *v1alpha1.FluxStatus, flux *v1alpha1.Flux, seen fluxFacts) {
	readyRanks := int32(0)
	if setup := seen.setup; setup != nil {
		status.SetupRef = &v1alpha1.SetupReference{Name: setup.Name, UID: string(setup.UID)}
		status.Restarts = setup.Spec.Restarts
		status.ExitCode, status.StartTime = nil, nil
		if current(setup) {
			readyRanks = setup.Status.ReadyRanks
			status.ExitCode = setup.Status.ExitCode
			if launch := setup.Spec.Launch; launch != nil && launch.Attempt == setup.Spec.Attempt {
				status.StartTime = launch.Time.DeepCopy()
			}
		}
	}
	if seen.end != nil {
		readyRanks = 0
	}
	status.Ready = fmt.Sprintf("%d/%d", readyRanks, flux.Spec.Size)
}

// setupReadyCondition decides the condition SetupReady: what the FluxSetup says of Accepted and Configured.
func setupReadyCondition(seen fluxFacts) metav1.Condition {
	ready := metav1.Condition{Type: v1alpha1.ConditionSetupReady, Status: metav1.ConditionFalse}
	switch setup := seen.setup; {
	// 1. There is none, or the API server will not have it.
	case seen.missing != nil:
		ready.Reason, ready.Message = seen.missing.reason, seen.missing.message
	case setup == nil:
		ready.Reason, ready.Message = v1alpha1.ReasonSetupLost, "there is no FluxSetup"
	// 2. Nothing is wanted.
	case setup.Spec.Suspend && cleared(setup):
		ready.Reason, ready.Message = v1alpha1.ReasonSuspended, "suspended: nothing is left"
	case setup.Spec.Suspend:
		ready.Reason, ready.Message = v1alpha1.ReasonSuspending, "waiting for all pods to end"
	// 3. It has not been looked at yet, or speaks of an attempt that is over.
	case !current(setup):
		ready.Reason, ready.Message = v1alpha1.ReasonStarting, fmt.Sprintf("attempt %d is about to begin", setup.Spec.Attempt)
	// 4. It speaks for itself.
	default:
		said := firstNotTrue(setup.Status.Conditions, v1alpha1.ConditionAccepted, v1alpha1.ConditionConfigured)
		ready.Status, ready.Reason, ready.Message = said.Status, said.Reason, said.Message
	}
	return ready
}

// firstNotTrue is the first of the conditions that is not True, or else the last. One that is not there yet is
// False, with the reason Starting.
func firstNotTrue(conditions []metav1.Condition, kinds ...string) metav1.Condition {
	var said metav1.Condition
	for _, kind := range kinds {
		said = ptr.Deref(apimeta.FindStatusCondition(conditions, kind), metav1.Condition{
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
	configured := apimeta.FindStatusCondition(setup.Status.Conditions, v1alpha1.ConditionConfigured)
	return current(setup) && configured != nil &&
		configured.Status == metav1.ConditionFalse && configured.Reason == v1alpha1.ReasonSuspended
}

// runningCondition decides the condition Running. Its reason, if it is False, is what a user waits for.
func runningCondition(seen fluxFacts, ready, restarting metav1.Condition) metav1.Condition {
	running := metav1.Condition{Type: v1alpha1.ConditionRunning, Status: metav1.ConditionFalse}
	switch setup := seen.setup; {
	case seen.end != nil:
		running.Reason, running.Message = v1alpha1.ReasonFinished, "the work is over"
	case setup == nil || setup.Spec.Suspend:
		running.Reason, running.Message = ready.Reason, ready.Message
	case quorum(setup):
		running.Status = metav1.ConditionTrue
		running.Reason, running.Message = v1alpha1.ReasonQuorumReached, "enough brokers have found each other, and the command runs"
	case ready.Reason == v1alpha1.ReasonNameConflict || ready.Reason == v1alpha1.ReasonApplyFailed:
		running.Reason, running.Message = ready.Reason, ready.Message
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
	return current(setup) && failureOf(setup) == nil &&
		apimeta.IsStatusConditionTrue(setup.Status.Conditions, v1alpha1.ConditionQuorumReached)
}

// suspendedCondition decides the condition Suspended.
func suspendedCondition(flux *v1alpha1.Flux, seen fluxFacts, ready metav1.Condition) metav1.Condition {
	suspended := metav1.Condition{Type: v1alpha1.ConditionSuspended, Status: metav1.ConditionFalse}
	switch {
	case !flux.Spec.Suspend:
		suspended.Reason, suspended.Message = v1alpha1.ReasonNotSuspended, "suspend is not set"
	case seen.end != nil:
		suspended.Reason, suspended.Message = v1alpha1.ReasonFinished, "the work is over"
	case ready.Reason == v1alpha1.ReasonSuspended:
		suspended.Status = metav1.ConditionTrue
		suspended.Reason, suspended.Message = ready.Reason, ready.Message
	default:
		suspended.Reason, suspended.Message = v1alpha1.ReasonSuspending, ready.Message
	}
	return suspended
}

// restartingCondition decides the condition Restarting. It keeps its message until the next quorum: the
// FluxSetup forgets the failure when it begins anew.
func restartingCondition(flux *v1alpha1.Flux, seen fluxFacts) metav1.Condition {
	restarting := metav1.Condition{
		Type: v1alpha1.ConditionRestarting, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonNotRestarting, Message: "nothing is under way after a failure",
	}
	setup := seen.setup
	if setup == nil || seen.end != nil || setup.Spec.Restarts == 0 || setup.Spec.Suspend || quorum(setup) {
		return restarting
	}
	before := trueCondition(flux.Status.Conditions, v1alpha1.ConditionRestarting)
	failed := trueCondition(setup.Status.Conditions, v1alpha1.ConditionFailed)
	switch {
	case !current(setup) && failed != nil:
		restarting.Message = fmt.Sprintf("restart %d of %d, as attempt %d failed with %s: %s",
			setup.Spec.Restarts, flux.Spec.MaxRestarts, setup.Status.Attempt, failed.Reason, failed.Message)
	case setup.Spec.Restarts > flux.Status.Restarts:
		restarting.Message = fmt.Sprintf("restart %d of %d", setup.Spec.Restarts, flux.Spec.MaxRestarts)
	case before != nil:
		restarting.Message = before.Message
	default:
		return restarting
	}
	restarting.Status, restarting.Reason = metav1.ConditionTrue, v1alpha1.ReasonRestarting
	return restarting
}
