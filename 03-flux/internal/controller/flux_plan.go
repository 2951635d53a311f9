package controller

import (
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// standing says whose the FluxSetup of a Flux's name is.
type standing int

const (
	// standingAbsent: there is none.
	standingAbsent standing = iota
	// standingOurs: it is the one that was made for this Flux.
	standingOurs
	// standingPredecessor: it was made for a Flux of the same name that is gone, and goes with it.
	standingPredecessor
	// standingForeign: it is not this Flux's, and is left as it is.
	standingForeign
)

func standingOf(flux *v1alpha1.Flux, setup *v1alpha1.FluxSetup) standing {
	if setup == nil {
		return standingAbsent
	}
	ref := flux.Status.SetupRef
	if metav1.IsControlledBy(setup, flux) && (ref == nil || ref.UID == string(setup.UID)) {
		return standingOurs
	}
	owner := metav1.GetControllerOf(setup)
	if owner != nil && owner.APIVersion == v1alpha1.GroupVersion.String() && owner.Kind == "Flux" &&
		owner.Name == flux.Name && owner.UID != flux.UID {
		return standingPredecessor
	}
	return standingForeign
}

// ending is how a Flux ends.
type ending struct {
	// condition is Complete or Failed.
	condition, reason, message string
	exitCode                   *int32
}

// plan is what a pass does about one Flux.
type plan struct {
	standing standing
	// apply is what the FluxSetup should be; nil if it is so already, or is not to be touched.
	apply *v1alpha1.FluxSetup
	// missing is why there is no FluxSetup, and cannot be one now; nil if there is no such reason.
	missing *obstacle
	// end is set if the Flux is over, and its status does not say so yet.
	end *ending
	// wake is when to come back for what no event announces; 0 if there is no such thing.
	wake time.Duration
}

// obstacle is what keeps a FluxSetup from being as it should be.
type obstacle struct {
	reason, message string
	// retry is the error after which it is tried again; nil if it waits for an event.
	retry error
}

// planFor decides, from a Flux and the FluxSetup of its name, whoever's it is.
func planFor(flux *v1alpha1.Flux, setup *v1alpha1.FluxSetup, now time.Time) plan {
	p := plan{standing: standingOf(flux, setup)}
	p.missing = obstacleOf(flux, p.standing)
	switch {
	// 1. Over: nothing runs again. Only what is left of it goes, in its time.
	case ended(flux):
		p.planExpiry(flux, setup, now)
	// 2. It had a FluxSetup, and has it no more. What ran in it is not known, so there is never a second one.
	case p.missing != nil && p.missing.reason == v1alpha1.ReasonSetupLost:
		p.end = &ending{condition: v1alpha1.ConditionFailed, reason: p.missing.reason, message: p.missing.message}
	// 3. The name is taken: there is nothing to do but to wait.
	case p.missing != nil:
	// 4. There was none. One that somebody deleted before status.setupRef was written, which is the next request
	// after the one that made it, cannot be told from one that was never made: it is made once more.
	case p.standing == standingAbsent:
		p.apply = firstSetup(flux)
	// 5. It is ours. If somebody has deleted it, it may say how it ended, as long as it is still there.
	case !setup.DeletionTimestamp.IsZero():
		p.end = endOf(flux, setup)
	default:
		p.planNext(flux, setup)
	}
	return p
}

// obstacleOf is what the standing of a FluxSetup means to the Flux.
func obstacleOf(flux *v1alpha1.Flux, standing standing) *obstacle {
	switch ref := flux.Status.SetupRef; {
	case standing == standingOurs:
		return nil
	case ref != nil:
		return &obstacle{reason: v1alpha1.ReasonSetupLost, message: fmt.Sprintf(
			"FluxSetup %s of uid %s is gone, though only the operator should delete it: what ran in it is not run again", ref.Name, ref.UID)}
	case standing == standingPredecessor:
		return &obstacle{reason: v1alpha1.ReasonStarting, message: "waiting for the FluxSetup of an earlier Flux of this name to go"}
	case standing == standingForeign:
		return nameConflictOf(flux)
	}
	return nil
}

func nameConflictOf(flux *v1alpha1.Flux) *obstacle {
	return &obstacle{reason: v1alpha1.ReasonNameConflict, message: fmt.Sprintf(
		"FluxSetup %s exists and does not belong to this Flux: it is left as it is", flux.Name)}
}

// planExpiry suspends the FluxSetup of a Flux that was over long enough: Job, pods, Secret, ConfigMap and
// Service go.
func (p *plan) planExpiry(flux *v1alpha1.Flux, setup *v1alpha1.FluxSetup, now time.Time) {
	ttl, end := flux.Spec.TTLSecondsAfterFinished, flux.Status.CompletionTime
	if ttl == nil || end == nil || p.standing != standingOurs || !setup.DeletionTimestamp.IsZero() || setup.Spec.Suspend {
		return
	}
	if left := end.Add(time.Duration(*ttl) * time.Second).Sub(now); left > 0 {
		p.wake = left
		return
	}
	p.apply = nextSetup(flux, setup)
	p.apply.Spec.Suspend = true
}

// planNext decides what the FluxSetup, which is ours, should be next.
func (p *plan) planNext(flux *v1alpha1.Flux, setup *v1alpha1.FluxSetup) {
	if p.end = endOf(flux, setup); p.end != nil {
		return
	}
	next := nextSetup(flux, setup)
	switch {
	// 1. Suspended, or to be so. An attempt that has failed is made again when that is over.
	case flux.Spec.Suspend:
	// 2. Failed, with a restart left: all brokers start again, from clean.
	case failureOf(setup) != nil:
		next.Spec.Attempt++
		next.Spec.Restarts++
	// 3. Resumed: that is an attempt, and no restart.
	case setup.Spec.Suspend:
		next.Spec.Attempt++
	}
	live := setup.Spec.DeepCopy()
	live.Launch = nil
	if !apiequality.Semantic.DeepEqual(*live, next.Spec) {
		p.apply = next
	}
}

// endOf is how the FluxSetup says that the Flux ends; nil if it does not.
func endOf(flux *v1alpha1.Flux, setup *v1alpha1.FluxSetup) *ending {
	if !current(setup) {
		return nil
	}
	if apimeta.IsStatusConditionTrue(setup.Status.Conditions, v1alpha1.ConditionComplete) {
		return &ending{
			condition: v1alpha1.ConditionComplete, reason: v1alpha1.ReasonCommandSucceeded,
			message: "the command has ended with 0", exitCode: new(int32(0)),
		}
	}
	failed := failureOf(setup)
	if failed == nil || (failed.Reason != v1alpha1.ReasonDeadlineExceeded && setup.Spec.Restarts < flux.Spec.MaxRestarts) {
		return nil
	}
	return &ending{
		condition: v1alpha1.ConditionFailed, reason: failed.Reason, message: failed.Message,
		exitCode: setup.Status.ExitCode,
	}
}

// current tells whether the status of a FluxSetup speaks of the attempt that is wanted. If not, it is about
// one that is over, and says nothing about what is.
func current(setup *v1alpha1.FluxSetup) bool {
	return setup.Status.Attempt == setup.Spec.Attempt
}

// failureOf is the failure of the present attempt; nil if it has not failed.
func failureOf(setup *v1alpha1.FluxSetup) *metav1.Condition {
	if !current(setup) {
		return nil
	}
	return trueCondition(setup.Status.Conditions, v1alpha1.ConditionFailed)
}

func trueCondition(conditions []metav1.Condition, kind string) *metav1.Condition {
	condition := apimeta.FindStatusCondition(conditions, kind)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return nil
	}
	return condition
}

// ended tells whether a Flux is over, for good: the latch.
func ended(flux *v1alpha1.Flux) bool {
	return apimeta.IsStatusConditionTrue(flux.Status.Conditions, v1alpha1.ConditionComplete) ||
		apimeta.IsStatusConditionTrue(flux.Status.Conditions, v1alpha1.ConditionFailed)
}
