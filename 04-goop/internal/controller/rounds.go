package controller

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

// ensureRounds changes the DaemonSets to match the plan. First DaemonSets lose nodes, then they gain nodes, then
// missing ones are created, the last two only if work may begin. It returns after the first change. While the record
// cannot be read, it is not known which workers have finished: then only work that has to end is changed.
func (r *GoopReconciler) ensureRounds(ctx context.Context, observed *observation, mayBegin bool) (bool, error) {
	if observed.damage != nil && !observed.stopping {
		return false, nil
	}
	rejected := r.endOrphans(ctx, observed, observed.plan)
	if isStaleOrTransient(rejected) {
		return false, rejected
	}
	if observed.hostRejected {
		changed, err := r.deleteRounds(ctx, observed)
		return changed, errors.Join(rejected, err)
	}
	lose, gain, missing := changes(observed)
	// The nodes where deleted work had begun have to be cleaned up. If recordAll could not record them, only work that has to
	// end is deleted: see placeRound.
	if !observed.stopping && len(unrecordedNodes(observed)) > 0 {
		lose = nil
	}
	// A rejected change does not keep other work from ending.
	changed, err := r.endRounds(ctx, observed, lose)
	rejected = errors.Join(rejected, err)
	if changed || isStaleOrTransient(err) || !mayBegin {
		return changed, rejected
	}
	changed, err = r.beginRounds(ctx, observed, gain, missing)
	if changed || isStaleOrTransient(err) {
		return changed, err
	}
	return false, errors.Join(rejected, err)
}

// beginRounds adds nodes to DaemonSets, then creates missing ones. It returns after the first change.
func (r *GoopReconciler) beginRounds(ctx context.Context, observed *observation, gain, missing []plan.Round) (bool, error) {
	if len(gain)+len(missing) == 0 {
		return false, nil
	}
	// A worker may still be terminating because a user has deleted its DaemonSet. If its work were placed elsewhere now,
	// two copies would run at the same time.
	if observed.nodes.anyReachable(observed.work.ending) {
		gain = nil
	}
	if err := r.confirm(ctx, observed.goop); err != nil {
		return false, err
	}
	if err := r.confirmRecord(ctx, observed); err != nil {
		return false, err
	}
	return firstChange(append(gain, missing...), func(round plan.Round) (bool, error) {
		if observed.rounds[round.Number] != nil {
			return r.placeRound(ctx, observed, round)
		}
		// A user may have deleted one whose pods the cache does not have yet.
		if err := r.confirmPods(ctx, observed, client.MatchingLabels{v1alpha1.LabelRound: strconv.Itoa(round.Number)}); err != nil {
			return false, err
		}
		return r.createDaemonSet(ctx, observed, round, desiredRound(observed.goop, round, r.images), observed.work.ending)
	}, isNameConflict)
}

// endRounds removes nodes from the first round that has to lose some and can. It has retries of its own: if it waited for
// the retry of another failed write, the pod of a finished worker could be deleted meanwhile, and the work would run
// again.
func (r *GoopReconciler) endRounds(ctx context.Context, observed *observation, lose []plan.Round) (changed bool, err error) {
	if len(lose) == 0 {
		return false, nil
	}
	err = r.endRetries.try(ctx, observed.request(), observed.goop, func(ctx context.Context) (err error) {
		changed, err = firstChange(lose, func(round plan.Round) (bool, error) { return r.placeRound(ctx, observed, round) }, isRejected)
		return err
	})
	return changed, err
}

// firstChange changes one round after another until one has changed, until an error is not a rejection, or until a
// rejection is not one that skippable accepts. The error joins all rejections.
func firstChange(rounds []plan.Round, change func(plan.Round) (bool, error), skippable func(error) bool) (bool, error) {
	var failed error
	for _, round := range rounds {
		changed, err := change(round)
		if changed || isStaleOrTransient(err) {
			return changed, err
		}
		failed = errors.Join(failed, err)
		if err != nil && !skippable(err) {
			break
		}
	}
	return false, failed
}

// isStaleOrTransient reports whether an error is of the second or third class: then no other change is tried.
func isStaleOrTransient(err error) bool { return err != nil && !isRejected(err) }

// isNameConflict reports whether an error has name conflicts only. Any other rejection would be the same for all rounds,
// because they differ only in name and nodes.
func isNameConflict(err error) bool {
	return hasReason(err, v1alpha1.ReasonNameConflict) && without(err, v1alpha1.ReasonNameConflict) == nil
}

// changes returns the rounds that differ from the plan: those that lose nodes, without the nodes that they gain; those
// that only gain nodes; and those without a DaemonSet. Losses come first: the checks that are needed before work begins
// on more nodes must not keep work elsewhere from ending.
func changes(observed *observation) (lose, gain, missing []plan.Round) {
	planned := map[int]bool{}
	for _, round := range observed.plan {
		planned[round.Number] = true
		daemonSet := observed.rounds[round.Number]
		switch placed := observed.placed[round.Number]; {
		case daemonSet == nil:
			missing = append(missing, round)
		// A user has deleted it. It is created again when it no longer exists.
		case isBeingDeleted(daemonSet):
		case !keepsNodes(placed, round):
			lose = append(lose, intersection(placed, round))
		case !same(placed, round):
			gain = append(gain, round)
		}
	}
	for _, number := range slices.Sorted(maps.Keys(observed.rounds)) {
		if none := (plan.Round{Number: number}); !planned[number] && !isBeingDeleted(observed.rounds[number]) && !same(observed.placed[number], none) {
			lose = append(lose, none)
		}
	}
	return lose, gain, missing
}

// keepsNodes reports whether a round keeps all the nodes that it had.
func keepsNodes(before, after plan.Round) bool {
	switch {
	case same(before, after):
		return true
	case before.Everywhere && after.Everywhere:
		return containsAll(before.Nodes, after.Nodes)
	case before.Everywhere:
		return false
	case after.Everywhere:
		return !slices.ContainsFunc(before.Nodes, func(node string) bool {
			_, excluded := slices.BinarySearch(after.Nodes, node)
			return excluded
		})
	}
	return containsAll(after.Nodes, before.Nodes)
}

// intersection returns a round with the nodes that are in both.
func intersection(before, after plan.Round) plan.Round {
	both := plan.Round{Number: after.Number, Everywhere: before.Everywhere && after.Everywhere}
	if both.Everywhere {
		both.Nodes = slices.Concat(before.Nodes, after.Nodes)
		slices.Sort(both.Nodes)
		both.Nodes = slices.Compact(both.Nodes)
		return both
	}
	listed, other := after, before
	if after.Everywhere {
		listed, other = before, after
	}
	for _, node := range listed.Nodes {
		if _, found := slices.BinarySearch(other.Nodes, node); found != other.Everywhere {
			both.Nodes = append(both.Nodes, node)
		}
	}
	return both
}

// containsAll reports whether a sorted list has all elements of another.
func containsAll(all, some []string) bool {
	for len(some) > 0 {
		at, found := slices.BinarySearch(all, some[0])
		if !found {
			return false
		}
		all, some = all[at+1:], some[1:]
	}
	return true
}

// deleteAfterTTL deletes the dependents of finished work when the TTL has expired: first the DaemonSets, then the record,
// unless a cleanup needs it.
func (r *GoopReconciler) deleteAfterTTL(ctx context.Context, observed *observation) (bool, error) {
	ttl := observed.goop.Spec.TTLSecondsAfterFinished
	if !observed.goop.Ended() || ttl == nil || observed.goop.Status.CompletionTime == nil {
		return false, nil
	}
	if left := observed.goop.Status.CompletionTime.Add(time.Duration(*ttl) * time.Second).Sub(observed.now); left > 0 {
		observed.requeueAfter(left)
		return false, nil
	}
	if changed, err := r.deleteRounds(ctx, observed); changed || err != nil {
		return changed, err
	}
	if len(observed.rounds) > 0 || len(observed.goop.Spec.CleanupCmd) > 0 {
		return false, nil
	}
	for _, number := range slices.Backward(slices.Sorted(maps.Keys(observed.shards))) {
		// Another controller's finalizer may keep it.
		if shard := observed.shards[number]; shard.DeletionTimestamp.IsZero() {
			return true, deleteDependent(ctx, r.Client, shard)
		}
	}
	return false, nil
}

// deleteRounds ends the work by deleting its DaemonSets. After an error it deletes the others. It has the same retries as
// endRounds.
func (r *GoopReconciler) deleteRounds(ctx context.Context, observed *observation) (changed bool, err error) {
	left := slices.DeleteFunc(slices.Sorted(maps.Keys(observed.rounds)), func(number int) bool {
		return isBeingDeleted(observed.rounds[number])
	})
	if len(left) == 0 {
		return false, nil
	}
	err = r.endRetries.try(ctx, observed.request(), observed.goop, func(ctx context.Context) (failed error) {
		for _, number := range left {
			err := deleteDependent(ctx, r.Client, observed.rounds[number])
			changed, failed = changed || err == nil, errors.Join(failed, err)
		}
		return failed
	})
	return changed, err
}
