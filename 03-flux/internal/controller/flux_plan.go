package controller

import (
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// ownership describes who owns the FluxSetup that has the name of a Flux.
type ownership int

const (
	// setupAbsent: there is none.
	setupAbsent ownership = iota
	// setupOwned: it was created for this Flux.
	setupOwned
	// setupOfPredecessor: it was created for a deleted Flux of the same name, and the garbage collector deletes it.
	setupOfPredecessor
	// setupNotOwned: this Flux does not own it. It is left unchanged.
	setupNotOwned
)

// ownershipOf decides by the recorded uid, if there is one. Other clients can edit the owner references: then the Flux
// owns the FluxSetup again. Until the uid is recorded, the owner references decide.
func ownershipOf(flux *v1alpha1.Flux, setup *v1alpha1.FluxSetup) ownership {
	ref := flux.Status.SetupRef
	switch {
	case setup == nil:
		return setupAbsent
	case ref != nil && ref.UID == string(setup.UID), ref == nil && metav1.IsControlledBy(setup, flux):
		return setupOwned
	}
	owner := metav1.GetControllerOf(setup)
	if owner != nil && owner.APIVersion == v1alpha1.SchemeGroupVersion.String() && owner.Kind == "Flux" &&
		owner.Name == flux.Name && owner.UID != flux.UID {
		return setupOfPredecessor
	}
	return setupNotOwned
}

// obstacle is why the Flux has no FluxSetup and cannot have one now.
type obstacle struct {
	reason, message string
}

// plan is what a reconciliation does for one Flux.
type plan struct {
	ownership ownership
	// desired is the FluxSetup to apply; nil if it is as desired, or is to be left unchanged.
	desired *v1alpha1.FluxSetup
	// obstacle is why the Flux has no FluxSetup and cannot have one now; nil if there is no obstacle.
	obstacle *obstacle
	// end is set if the Flux has ended and its status does not say so yet.
	end *ending
	// backOff is the time from the start of the failed attempt to the next one; 0 if no attempt waits for its back-off.
	backOff time.Duration
	// requeueAfter is when to reconcile again for what no event triggers; 0 if there is no need to.
	requeueAfter time.Duration
}

// confirmed reports whether the state in the cache is enough to carry out the plan. Whatever starts, ends or removes an
// attempt, the end of the Flux included, is decided again from the API server's state, so that nothing is done twice.
func (p *plan) confirmed(flux *v1alpha1.Flux) bool {
	return p.desired == nil && p.end == nil && (p.ownership == setupOwned || ended(flux))
}

// planFor decides what to do for a Flux. setup is the FluxSetup that has its name, whatever owns it; nil if there is
// none.
func planFor(flux *v1alpha1.Flux, setup *v1alpha1.FluxSetup, now time.Time, backOff BackOff) plan {
	p := plan{ownership: ownershipOf(flux, setup)}
	p.obstacle = obstacleOf(flux, setup, p.ownership)
	switch {
	// 1. The Flux has ended: nothing runs again. Only the dependents that are left are deleted, after the TTL.
	case ended(flux):
		p.planExpiry(flux, setup, now)
	// 2. Its FluxSetup was deleted. What ran is not known, so a second one is never created.
	case p.obstacle != nil && p.obstacle.reason == v1alpha1.ReasonSetupLost:
		p.end = &ending{condition: v1alpha1.ConditionFailed, reason: p.obstacle.reason, message: p.obstacle.message}
	// 3. The name is taken: wait until it is released.
	case p.obstacle != nil:
	// 4. There is no FluxSetup. If one was deleted before status.setupRef was written, that cannot be detected. Creating
	//    it again is safe, because nothing has run in it.
	case p.ownership == setupAbsent:
		p.desired = firstSetup(flux)
	// 5. The Flux owns it, and it was deleted after it reported how the attempt ended.
	case !setup.DeletionTimestamp.IsZero():
		p.end = endOf(flux, setup)
	default:
		p.planNext(flux, setup, now, backOff)
	}
	return p
}

// obstacleOf derives the obstacle from the ownership of a FluxSetup.
func obstacleOf(flux *v1alpha1.Flux, setup *v1alpha1.FluxSetup, ownership ownership) *obstacle {
	switch ref := flux.Status.SetupRef; {
	// A deletion cannot be undone. Even if a finalizer of another client keeps the FluxSetup, nothing more is reported
	// in it.
	case ownership == setupOwned && !setup.DeletionTimestamp.IsZero() && endOf(flux, setup) == nil:
		return setupLost(setup.Name, string(setup.UID))
	case ownership == setupOwned:
		return nil
	case ref != nil:
		return setupLost(ref.Name, ref.UID)
	case ownership == setupOfPredecessor:
		return &obstacle{reason: v1alpha1.ReasonStarting, message: "waiting for the deletion of the FluxSetup of an earlier Flux of this name"}
	case ownership == setupNotOwned:
		conflict := nameConflict("FluxSetup " + flux.Name)
		return &obstacle{reason: conflict.reason, message: conflict.message}
	}
	return nil
}

func setupLost(name, uid string) *obstacle {
	return &obstacle{reason: v1alpha1.ReasonSetupLost, message: fmt.Sprintf(
		"FluxSetup %s of uid %s was deleted by another client: what ran in it is not run again", name, uid)}
}

// planExpiry suspends the FluxSetup of a Flux whose TTL has expired: the FluxSetup controller then deletes Job, pods,
// Secret, ConfigMap and Service. Otherwise it only keeps the owner reference.
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
		p.desired = next
	}
}

// planNext decides the next desired state of a FluxSetup that the Flux owns.
func (p *plan) planNext(flux *v1alpha1.Flux, setup *v1alpha1.FluxSetup, now time.Time, backOff BackOff) {
	// A failed attempt without a restart left ends the Flux.
	if p.end = endOf(flux, setup); p.end != nil {
		return
	}
	if p.end = endOfChanged(flux, setup); p.end != nil {
		return
	}
	next := nextSetup(flux, setup)
	switch {
	// 1. Suspended, or being suspended. A failed attempt is made again after the resume.
	case flux.Spec.Suspend:
	// 2. Failed, with a restart left: wait for the back-off.
	case failedCondition(setup) != nil && backOff.left(setup, now) > 0:
		p.backOff, p.requeueAfter = backOff.after(setup.Spec.Restarts), backOff.left(setup, now)
		next.Spec.Suspend = setup.Spec.Suspend
	// 3. Failed, with a restart left: start all brokers again, in new pods.
	case failedCondition(setup) != nil:
		next.Spec.Attempt++
		next.Spec.Restarts++
	// 4. To be resumed, but it is not known yet what the attempt did until it was suspended: it may have ended.
	case setup.Spec.Suspend && !suspensionObserved(setup):
		next.Spec.Suspend = true
	// 5. Resumed: that is a new attempt, but not a restart.
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
		p.desired = next
	}
}

// endOfChanged is the end of a Flux whose FluxSetup another writer has changed so that another attempt would follow,
// which is neither a restart nor a resume; nil if there is no such change.
func endOfChanged(flux *v1alpha1.Flux, setup *v1alpha1.FluxSetup) *ending {
	field := ""
	switch {
	case !writtenByFlux(setup, "attempt"):
		field = "attempt"
	case setup.Spec.Suspend && !flux.Spec.Suspend && !writtenByFlux(setup, "suspend"):
		field = "suspend"
	default:
		return nil
	}
	return &ending{
		condition: v1alpha1.ConditionFailed, reason: v1alpha1.ReasonSetupChanged, message: setupChanged(setup, field), exitCode: setup.Status.ExitCode,
	}
}

// BackOff is the shortest time from the start of the first attempt to the restart after it. It doubles with each
// restart, up to maxBackOff, like the kubelet's back-off for containers. It counts from the start that spec.launch
// records, so that an attempt that ran for a long time is followed at once.
type BackOff time.Duration

const (
	// DefaultBackOff is the kubelet's.
	DefaultBackOff = BackOff(10 * time.Second)
	maxBackOff     = 5 * time.Minute
)

// after is the back-off after that many restarts.
func (b BackOff) after(restarts int32) time.Duration {
	backOff := time.Duration(b)
	for ; restarts > 0 && backOff < maxBackOff; restarts-- {
		backOff *= 2
	}
	return min(backOff, maxBackOff)
}

// left is how much of the back-off is left.
func (b BackOff) left(setup *v1alpha1.FluxSetup, now time.Time) time.Duration {
	return launchTime(setup).Add(b.after(setup.Spec.Restarts)).Sub(now)
}
