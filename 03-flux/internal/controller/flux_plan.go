package controller

import (
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// ownership says to whom the FluxSetup of a Flux's name belongs.
type ownership int

const (
	// setupAbsent: there is none.
	setupAbsent ownership = iota
	// setupOwned: it is the one that was made for this Flux.
	setupOwned
	// setupOfPredecessor: it was made for a deleted Flux of the same name, and is deleted next.
	setupOfPredecessor
	// setupNotOwned: it is not this Flux's, and is left unchanged.
	setupNotOwned
)

// ownershipOf decides by the recorded uid, if there is one: other clients can edit the owner references, and then the
// FluxSetup is owned again. Until the uid is recorded, the owner references decide.
func ownershipOf(flux *v1alpha1.Flux, setup *v1alpha1.FluxSetup) ownership {
	ref := flux.Status.SetupRef
	switch {
	case setup == nil:
		return setupAbsent
	case ref != nil && ref.UID == string(setup.UID), ref == nil && metav1.IsControlledBy(setup, flux):
		return setupOwned
	}
	owner := metav1.GetControllerOf(setup)
	if owner != nil && owner.APIVersion == v1alpha1.GroupVersion.String() && owner.Kind == "Flux" &&
		owner.Name == flux.Name && owner.UID != flux.UID {
		return setupOfPredecessor
	}
	return setupNotOwned
}

// obstacle is why there is no FluxSetup of the Flux, and cannot be one now.
type obstacle struct {
	reason, message string
}

// plan is what a reconciliation does about one Flux.
type plan struct {
	ownership ownership
	// apply is what the FluxSetup should be; nil if it is so already, or is to be left unchanged.
	apply *v1alpha1.FluxSetup
	// obstacle is why there is no FluxSetup, and cannot be one now; nil if there is no such reason.
	obstacle *obstacle
	// end is set if the Flux has ended, and its status does not say so yet.
	end *ending
	// backOff is how long after the start of the failed attempt the next one starts; 0 if none waits for that.
	backOff time.Duration
	// requeueAfter is when to come back for what no event announces; 0 if there is no such thing.
	requeueAfter time.Duration
}

// confirmed tells whether the plan may be carried out by what the cache shows. Whatever starts, ends or removes an
// attempt is decided anew on what the API server itself says, the end of the Flux included: what was done once is not
// done again.
func (p *plan) confirmed(flux *v1alpha1.Flux) bool {
	return p.apply == nil && p.end == nil && (p.ownership == setupOwned || ended(flux))
}

// planFor decides, from a Flux and the FluxSetup of its name, whether the Flux owns that or not.
func planFor(flux *v1alpha1.Flux, setup *v1alpha1.FluxSetup, now time.Time) plan {
	p := plan{ownership: ownershipOf(flux, setup)}
	p.obstacle = obstacleOf(flux, p.ownership)
	switch {
	// 1. The Flux has ended: nothing runs again. Only what is left of it is removed, after its TTL.
	case ended(flux):
		p.planExpiry(flux, setup, now)
	// 2. It had a FluxSetup, and has it no more. What ran in it is not known, so there is never a second one.
	case p.obstacle != nil && p.obstacle.reason == v1alpha1.ReasonSetupLost:
		p.end = &ending{condition: v1alpha1.ConditionFailed, reason: p.obstacle.reason, message: p.obstacle.message}
	// 3. The name is taken: there is nothing to do but to wait.
	case p.obstacle != nil:
	// 4. There was none. One that was deleted before status.setupRef was written, which is the next request after the
	// one that made it, cannot be told from one that was never made: it is made once more.
	case p.ownership == setupAbsent:
		p.apply = firstSetup(flux)
	// 5. It is ours, and is being deleted by another client: while it exists, it may still say how it ended.
	case !setup.DeletionTimestamp.IsZero():
		p.end = endOf(flux, setup)
	default:
		p.planNext(flux, setup, now)
	}
	return p
}

// obstacleOf is what the ownership of a FluxSetup means to the Flux.
func obstacleOf(flux *v1alpha1.Flux, ownership ownership) *obstacle {
	switch ref := flux.Status.SetupRef; {
	case ownership == setupOwned:
		return nil
	case ref != nil:
		return &obstacle{reason: v1alpha1.ReasonSetupLost, message: fmt.Sprintf(
			"FluxSetup %s of uid %s does not exist any more, though only the operator should delete it: what ran in it is not run again", ref.Name, ref.UID)}
	case ownership == setupOfPredecessor:
		return &obstacle{reason: v1alpha1.ReasonStarting, message: "waiting for the deletion of the FluxSetup of an earlier Flux of this name"}
	case ownership == setupNotOwned:
		return &obstacle{reason: v1alpha1.ReasonNameConflict, message: nameConflictMessage(flux.Name)}
	}
	return nil
}

func nameConflictMessage(name string) string {
	return fmt.Sprintf("FluxSetup %s exists and is not owned by this Flux: it is left unchanged", name)
}

// planExpiry suspends the FluxSetup of a Flux that ended long enough ago: Job, pods, Secret, ConfigMap and Service are
// deleted. Until then, and after, it only remains owned.
func (p *plan) planExpiry(flux *v1alpha1.Flux, setup *v1alpha1.FluxSetup, now time.Time) {
	if p.ownership != setupOwned || !setup.DeletionTimestamp.IsZero() {
		return
	}
	next := nextSetup(flux, setup)
	next.Spec.Suspend = setup.Spec.Suspend
	if ttl, end := flux.Spec.TTLSecondsAfterFinished, flux.Status.CompletionTime; ttl != nil && end != nil && !setup.Spec.Suspend {
		p.requeueAfter = max(0, end.Add(time.Duration(*ttl)*time.Second).Sub(now))
		next.Spec.Suspend = p.requeueAfter == 0
	}
	if next.Spec.Suspend != setup.Spec.Suspend || !metav1.IsControlledBy(setup, flux) {
		p.apply = next
	}
}

// planNext decides what the FluxSetup, which is ours, should be next.
func (p *plan) planNext(flux *v1alpha1.Flux, setup *v1alpha1.FluxSetup, now time.Time) {
	if p.end = endOf(flux, setup); p.end != nil {
		return
	}
	next := nextSetup(flux, setup)
	switch {
	// 1. Suspended, or to be so. An attempt that has failed is made again when that is over.
	case flux.Spec.Suspend:
	// 2. Failed, with a restart left, and not for long enough.
	case failedCondition(setup) != nil && backOffLeft(setup, now) > 0:
		p.backOff, p.requeueAfter = backOffAfter(setup.Spec.Restarts), backOffLeft(setup, now)
		next.Spec.Suspend = setup.Spec.Suspend
	// 3. Failed, with a restart left: all brokers start again, from clean.
	case failedCondition(setup) != nil:
		next.Spec.Attempt++
		next.Spec.Restarts++
	// 4. Resumed: that is an attempt, and no restart.
	case setup.Spec.Suspend:
		next.Spec.Attempt++
	}
	if next.Spec.Attempt > v1alpha1.MaxAttempts {
		p.end = &ending{
			condition: v1alpha1.ConditionFailed, reason: v1alpha1.ReasonTooManyAttempts,
			message: fmt.Sprintf("attempt %d was the last: each restart and each resume is one", v1alpha1.MaxAttempts), exitCode: setup.Status.ExitCode,
		}
		return
	}
	live := setup.Spec.DeepCopy()
	live.Launch = nil
	if !apiequality.Semantic.DeepEqual(*live, next.Spec) || !metav1.IsControlledBy(setup, flux) {
		p.apply = next
	}
}

// The shortest time from the start of an attempt to the restart after it: that of the first restart, which doubles with
// each, and the longest. They are those of the kubelet for containers. It counts from the start, which is recorded in
// the spec of the FluxSetup, so that an attempt that ran for long is followed at once.
const (
	firstBackOff = 10 * time.Second
	maxBackOff   = 5 * time.Minute
)

// backOffAfter is that time after so many restarts.
func backOffAfter(restarts int32) time.Duration {
	backOff := firstBackOff
	for ; restarts > 0 && backOff < maxBackOff; restarts-- {
		backOff *= 2
	}
	return min(backOff, maxBackOff)
}

// backOffLeft is how much of it is left. It is never more than the whole, even where the clock of the replica that
// recorded the start was ahead of ours.
func backOffLeft(setup *v1alpha1.FluxSetup, now time.Time) time.Duration {
	launch, backOff := setup.Spec.Launch, backOffAfter(setup.Spec.Restarts)
	if launch == nil || launch.Attempt != setup.Spec.Attempt {
		return 0
	}
	return min(backOff, launch.Time.Add(backOff).Sub(now))
}
