package controller

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

// observe reads all that a reconciliation depends on from the cache, and makes the plan. The observation that comes with
// an error holds what was read before it.
func (r *GoopReconciler) observe(ctx context.Context, goop *v1alpha1.Goop) (*observation, error) {
	observed := newObservation(goop, r.clock.Now())
	observed.hostRejected = asksForHost(goop) && !r.allowHostAccess
	observed.stopping = goop.Spec.Suspend || goop.Ended() || observed.hostRejected || !goop.DeletionTimestamp.IsZero()
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
	observed.complete = true
	return observed, nil
}

// observeDaemonSets finds the DaemonSets of the Goop.
func (r *GoopReconciler) observeDaemonSets(ctx context.Context, observed *observation) error {
	goop := observed.goop
	var list appsv1.DaemonSetList
	err := r.List(ctx, &list, client.InNamespace(goop.Namespace), client.MatchingFields{goopIndex: goop.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing DaemonSets of Goop %s: %w", goop.Name, err)
	}
	for i := range list.Items {
		daemonSet := &list.Items[i]
		owned := metav1.IsControlledBy(daemonSet, goop)
		if owned && daemonSet.Name == cleanupName(goop.Name) {
			observed.cleanup = daemonSet
			observed.cleanupRound, _ = roundOf(0, daemonSet)
			continue
		}
		number, err := strconv.Atoi(daemonSet.Labels[v1alpha1.LabelRound])
		if err != nil || daemonSet.Name != roundName(goop.Name, number) || (!owned && !isOrphanOf(goop, daemonSet)) {
			continue
		}
		round, ours := roundOf(number, daemonSet)
		observed.rounds[number], observed.placed[number], observed.edited[number] = daemonSet, round, !ours
	}
	return nil
}

// isOrphanOf tells whether the garbage collector has removed the Goop from the owners of a DaemonSet, because a user
// deletes the Goop with --cascade=orphan. The work ends all the same: the cleanup waits for that.
func isOrphanOf(goop *v1alpha1.Goop, daemonSet *appsv1.DaemonSet) bool {
	return !goop.DeletionTimestamp.IsZero() && metav1.GetControllerOf(daemonSet) == nil &&
		daemonSet.Labels[labelManagedBy] == managedBy && !daemonSet.CreationTimestamp.Before(&goop.CreationTimestamp)
}

// observePods sums up what the pods of the work, and those of the cleanup, say of themselves.
func (r *GoopReconciler) observePods(ctx context.Context, observed *observation) error {
	goop := observed.goop
	var pods corev1.PodList
	err := r.List(ctx, &pods, client.InNamespace(goop.Namespace), client.MatchingFields{goopIndex: goop.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing Pods of Goop %s: %w", goop.Name, err)
	}
	observed.pods = pods.Items
	rounds := make(map[types.UID]int, len(observed.rounds))
	for number, daemonSet := range observed.rounds {
		rounds[daemonSet.UID] = number
	}
	if !goop.DeletionTimestamp.IsZero() {
		addDeletedRounds(rounds, observed)
	}
	observed.work = summarize(observed.pods, rounds, func(place plan.Place) bool { return observed.record.Finished[place] })
	if observed.cleanup != nil {
		observed.cleaning = summarize(observed.pods, map[types.UID]int{observed.cleanup.UID: 0}, func(place plan.Place) bool {
			_, cleaned := observed.record.Cleaned[place.Node]
			return cleaned
		})
	}
	return nil
}

// addDeletedRounds adds DaemonSets that are known by their pods only: where a Goop of an earlier version of the operator
// is deleted in the foreground, they are deleted first. Of their pods counts where they are, not of which round.
func addDeletedRounds(rounds map[types.UID]int, observed *observation) {
	for i := range observed.pods {
		pod := &observed.pods[i]
		if pod.Labels[v1alpha1.LabelRole] == v1alpha1.RoleWork && !pod.CreationTimestamp.Before(&observed.goop.CreationTimestamp) {
			if uid := controllerOf(pod); uid != "" {
				rounds[uid] = max(rounds[uid], 0)
			}
		}
	}
}

// planInput is what the plan depends on. What has finished and is not recorded yet is not run again meanwhile.
func planInput(observed *observation) plan.Input {
	in := plan.Input{
		JobCount: observed.goop.Spec.JobCount, Eligible: observed.eligible, Stopping: observed.stopping,
		Placed: map[plan.Place]bool{}, Finished: observed.record.Finished, Kept: observed.work.kept,
	}
	// A pod that is kept for its log is created again if it is evicted: not with access that is not granted any more.
	if observed.hostRejected {
		in.Kept = nil
	}
	if in.JobCount != nil {
		for number, round := range observed.placed {
			for _, node := range round.Nodes {
				in.Placed[plan.Place{Node: node, Round: number}] = true
			}
		}
	}
	if len(observed.work.ended) > 0 {
		in.Finished = make(map[plan.Place]bool, len(observed.record.Finished)+len(observed.work.ended))
		for place := range observed.record.Finished {
			in.Finished[place] = true
		}
		for place := range observed.work.ended {
			in.Finished[place] = true
		}
	}
	return in
}
