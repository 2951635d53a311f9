package controller

import (
	"context"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

// observe reads everything that a reconciliation depends on, and computes the plan. It writes nothing. It bypasses the
// cache only for a record that lacks shards there or cannot be read. If it returns an error, the observation holds what was
// read before the error.
func (r *GoopReconciler) observe(ctx context.Context, goop *v1alpha1.Goop) (*observation, error) {
	observed := newObservation(goop, r.clock.Now())
	observed.hostRejected = asksForHost(goop) && !r.allowHostAccess
	observed.stopping = goop.Spec.Suspend || observed.hostRejected || isOver(goop)
	if err := r.observeDaemonSets(ctx, observed); err != nil {
		return observed, err
	}
	if err := r.observeRecord(ctx, observed); err != nil {
		return observed, err
	}
	if err := r.observePods(ctx, observed); err != nil {
		return observed, err
	}
	var err error
	if observed.nodes, err = r.nodesFor(ctx, goop); err != nil {
		return observed, err
	}
	observed.eligible = observed.nodes.eligible(observed.work.atWork)
	observed.plan, observed.unplanned = plan.For(planInput(observed))
	lose, _, _ := changes(observed)
	observed.losing = len(lose) > 0
	observed.complete = true
	return observed, nil
}

// observeDaemonSets finds the DaemonSets of the Goop by owner and name.
func (r *GoopReconciler) observeDaemonSets(ctx context.Context, observed *observation) error {
	goop := observed.goop
	var list appsv1.DaemonSetList
	err := r.List(ctx, &list, client.InNamespace(goop.Namespace), client.MatchingFields{goopIndex: goop.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing DaemonSets of Goop %s: %w", goop.Name, err)
	}
	for i := range list.Items {
		daemonSet := &list.Items[i]
		if !metav1.IsControlledBy(daemonSet, goop) && !isOrphanOf(goop, daemonSet) {
			continue
		}
		if daemonSet.Name == cleanupName(goop.Name) {
			observed.cleanup = daemonSet
			observed.cleanupRound = roundOf(0, daemonSet)
			continue
		}
		if number, ok := roundNumber(goop.Name, daemonSet.Name); ok {
			observed.rounds[number], observed.placed[number] = daemonSet, roundOf(number, daemonSet)
		}
	}
	return nil
}

// isOrphanOf reports whether the garbage collector has orphaned a DaemonSet because a user deleted the Goop with
// --cascade=orphan. The operator still ends its work, because the cleanup has to wait for that, and later deletes the
// DaemonSet of the cleanup.
func isOrphanOf(goop *v1alpha1.Goop, daemonSet *appsv1.DaemonSet) bool {
	return !goop.DeletionTimestamp.IsZero() && metav1.GetControllerOf(daemonSet) == nil && isMadeFor(goop, daemonSet)
}

// observePods summarizes the pods of the work, and those of the cleanup.
func (r *GoopReconciler) observePods(ctx context.Context, observed *observation) error {
	var err error
	if observed.pods, err = r.podsOf(ctx, observed.key()); err != nil {
		return err
	}
	rounds := make(map[types.UID]podOwner, len(observed.rounds))
	for number, daemonSet := range observed.rounds {
		rounds[daemonSet.UID] = podOwner{round: number}
	}
	addWithoutDaemonSet(rounds, observed, v1alpha1.RoleWork)
	observed.work = summarize(observed.pods, rounds, func(place plan.Place) bool { return observed.record.Finished[place] })
	cleanups := map[types.UID]podOwner{}
	if observed.cleanup != nil {
		cleanups[observed.cleanup.UID] = podOwner{}
	}
	addWithoutDaemonSet(cleanups, observed, v1alpha1.RoleCleanup)
	observed.cleaning = summarize(observed.pods, cleanups, func(place plan.Place) bool {
		_, cleaned := observed.record.Cleaned[place.Node]
		return cleaned
	})
	return nil
}

// podsOf lists the pods of the Goops of a name from the cache. They are not copied, so they must not be changed.
func (r *GoopReconciler) podsOf(ctx context.Context, goop types.NamespacedName) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := r.List(ctx, &pods, client.InNamespace(goop.Namespace), client.MatchingFields{goopIndex: goop.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing Pods of Goop %s: %w", goop.Name, err)
	}
	return pods.Items, nil
}

// addWithoutDaemonSet adds the owners of pods of the Goop whose DaemonSets no longer exist. A user or the garbage collector has
// deleted them: the pods are terminating, or have become orphans.
func addWithoutDaemonSet(owners map[types.UID]podOwner, observed *observation, role string) {
	for i := range observed.pods {
		pod := &observed.pods[i]
		key := ownerKey(pod)
		if _, found := owners[key]; found || pod.Labels[v1alpha1.LabelRole] != role || !isMadeFor(observed.goop, pod) {
			continue
		}
		round, isRound := roundOfPod(pod)
		if !isRound && role == v1alpha1.RoleWork {
			continue
		}
		owners[key] = podOwner{round: round, deleted: true, orphaned: isOrphan(pod)}
	}
}

// planInput collects the input of the plan. Workers that have finished count as finished even before they are recorded,
// so that they do not run again.
func planInput(observed *observation) plan.Input {
	in := plan.Input{
		JobCount: observed.goop.Spec.JobCount, Eligible: observed.eligible, Stopping: observed.stopping && observed.goop.DeletionTimestamp.IsZero(),
		Placed: map[plan.Place]bool{}, Finished: observed.record.Finished, Kept: observed.work.kept,
		Unhealthy: observed.nodes.unhealthy, TakenUp: observed.work.takenUp,
	}
	// The pod of a finished worker is created again if it is evicted. That must not happen with host access that is no
	// longer permitted.
	if observed.hostRejected {
		in.Kept = nil
	}
	if in.JobCount != nil {
		in.Kept = keptWithRoom(observed, in.Kept)
		for number, round := range observed.placed {
			if round.Everywhere {
				continue
			}
			for _, node := range round.Nodes {
				in.Placed[plan.Place{Node: node, Round: number}] = true
			}
		}
		// A new DaemonSet adopts them there.
		for place := range observed.work.orphaned {
			if observed.rounds[place.Round] == nil {
				in.Placed[place] = true
			}
		}
	}
	if in.Unrecorded = len(observed.work.ended); in.Unrecorded > 0 {
		in.Finished = maps.Clone(observed.record.Finished)
		for place := range observed.work.ended {
			in.Finished[place] = true
		}
	}
	return in
}

// keptWithRoom leaves out the recorded workers on nodes that have no room for another worker of the Goop. The scheduler
// counts their pods with the requests of the work, although its init container has ended. Work that waits is more
// important than the log of work that has finished, but not than a result that only the pod has.
func keptWithRoom(observed *observation, kept map[plan.Place]bool) map[plan.Place]bool {
	resources := observed.goop.Spec.Resources
	if resources == nil || len(resources.Requests)+len(resources.Limits) == 0 || len(observed.work.crowded) == 0 {
		return kept
	}
	kept = maps.Clone(kept)
	maps.DeleteFunc(kept, func(place plan.Place, _ bool) bool {
		return observed.work.crowded[place.Node] && observed.record.Finished[place]
	})
	return kept
}
