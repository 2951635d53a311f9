package controller

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

// ensureRounds brings the DaemonSets in line with the plan: first those that lose nodes, then those that gain some, then
// those that are not there yet. It returns after the first change. What is rejected of one does not keep the others from
// being created.
func (r *GoopReconciler) ensureRounds(ctx context.Context, observed *observation) (bool, error) {
	if observed.unreadable != "" && !observed.goop.Ended() {
		return false, nil
	}
	lose, gain, missing := changes(observed)
	if len(lose) > 0 && beginsUnrecorded(observed) {
		// Work that is deleted has to be cleaned up after: that is recorded first.
		observed.stopping = true
		return r.recordWork(ctx, observed)
	}
	place := func(round plan.Round) (bool, error) {
		return r.place(ctx, observed.goop, observed.rounds[round.Number], round)
	}
	changed, rejected := firstChange(lose, place)
	if changed || (rejected != nil && !isRejected(rejected)) || len(gain)+len(missing) == 0 {
		return changed, rejected
	}
	if err := r.confirm(ctx, observed.goop); err != nil {
		return false, err
	}
	changed, err := firstChange(gain, place)
	if changed || (err != nil && !isRejected(err)) {
		return changed, err
	}
	rejected = errors.Join(rejected, err)
	changed, err = firstChange(missing, func(round plan.Round) (bool, error) {
		err := r.createDaemonSet(ctx, observed.goop, round, desiredRound(observed.goop, round, r.images))
		return err == nil, err
	})
	if changed {
		return true, nil
	}
	return false, errors.Join(rejected, err)
}

// firstChange changes one round after another, until one was changed or could not be. The error joins what was rejected.
func firstChange(rounds []plan.Round, change func(plan.Round) (bool, error)) (bool, error) {
	var rejected error
	for _, round := range rounds {
		changed, err := change(round)
		if changed || (err != nil && !isRejected(err)) {
			return changed, err
		}
		rejected = errors.Join(rejected, err)
	}
	return false, rejected
}

// createDaemonSet creates the DaemonSet of a round, or of the cleanup.
func (r *GoopReconciler) createDaemonSet(ctx context.Context, goop *v1alpha1.Goop, round plan.Round, daemonSet *appsv1.DaemonSet) error {
	if err := r.checkHostAccess(goop, round); err != nil {
		return err
	}
	return ensureDependent(ctx, r.Client, fieldOwner, goop, &appsv1.DaemonSet{}, daemonSet)
}

// place gives a DaemonSet its nodes, and tells whether that changed anything. It is the only field that is changed, but
// for the update strategy, if another writer has: with another, finished work would run again for it.
func (r *GoopReconciler) place(ctx context.Context, goop *v1alpha1.Goop, live *appsv1.DaemonSet, round plan.Round) (bool, error) {
	if err := r.checkHostAccess(goop, round); err != nil {
		return false, err
	}
	return patchDependent(ctx, r.Client, fieldOwner, live, map[string]any{
		"spec": map[string]any{
			"updateStrategy": map[string]any{"type": appsv1.OnDeleteDaemonSetStrategyType, "rollingUpdate": nil},
			"template": map[string]any{"spec": map[string]any{"affinity": map[string]any{
				"nodeAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": nodeSelectorOf(round)},
			}}},
		},
	})
}

// checkHostAccess returns an error if pods on these nodes would have an access to them that this operator does not
// grant. Whatever creates pods calls it: neither an edited record nor a restart without the flag gives more.
func (r *GoopReconciler) checkHostAccess(goop *v1alpha1.Goop, round plan.Round) error {
	if r.allowHostAccess || !asksForHost(goop) || (!round.Everywhere && len(round.Nodes) == 0) {
		return nil
	}
	return &rejectedError{reason: v1alpha1.ReasonHostAccessRefused, message: hostAccessMessage}
}

// changes are the rounds that are not as planned: those that lose nodes, those that only gain some, and those that
// have no DaemonSet.
func changes(observed *observation) (lose, gain, missing []plan.Round) {
	planned := map[int]bool{}
	for _, round := range observed.plan {
		planned[round.Number] = true
		daemonSet := observed.rounds[round.Number]
		switch is := observed.placed[round.Number]; {
		case daemonSet == nil:
			missing = append(missing, round)
		// A user has deleted it. It is created again when it is gone.
		case isBeingDeleted(daemonSet):
		case observed.edited[round.Number] || !gains(is, round):
			lose = append(lose, round)
		case !same(is, round):
			gain = append(gain, round)
		}
	}
	for _, number := range slices.Sorted(maps.Keys(observed.rounds)) {
		if none := (plan.Round{Number: number}); !planned[number] && !isBeingDeleted(observed.rounds[number]) && (observed.edited[number] || !same(observed.placed[number], none)) {
			lose = append(lose, none)
		}
	}
	return lose, gain, missing
}

func same(a, b plan.Round) bool {
	return a.Everywhere == b.Everywhere && slices.Equal(a.Nodes, b.Nodes)
}

// gains tells whether a round has all the nodes that it had.
func gains(before, after plan.Round) bool {
	switch {
	case same(before, after):
		return true
	case before.Everywhere && after.Everywhere:
		return contains(before.Nodes, after.Nodes)
	case before.Everywhere:
		return false
	case after.Everywhere:
		return !slices.ContainsFunc(before.Nodes, func(node string) bool {
			_, out := slices.BinarySearch(after.Nodes, node)
			return out
		})
	}
	return contains(after.Nodes, before.Nodes)
}

// contains tells whether a sorted list has all that is in another.
func contains(all, some []string) bool {
	for len(some) > 0 {
		at, found := slices.BinarySearch(all, some[0])
		if !found {
			return false
		}
		all, some = all[at+1:], some[1:]
	}
	return true
}

// deleteAfterTTL deletes what is left of work that is over, when the TTL has expired: first the DaemonSets, then the
// record, unless a cleanup is to read it.
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
	if numbers := slices.Sorted(maps.Keys(observed.shards)); len(numbers) > 0 {
		return true, deleteDependent(ctx, r.Client, observed.shards[numbers[len(numbers)-1]])
	}
	return false, nil
}

// deleteRounds ends the work: it deletes the DaemonSets one by one. While their pods are there, the cleanup waits.
func (r *GoopReconciler) deleteRounds(ctx context.Context, observed *observation) (bool, error) {
	for _, number := range slices.Sorted(maps.Keys(observed.rounds)) {
		if daemonSet := observed.rounds[number]; !isBeingDeleted(daemonSet) {
			return true, deleteDependent(ctx, r.Client, daemonSet)
		}
	}
	return false, nil
}

func isBeingDeleted(daemonSet *appsv1.DaemonSet) bool { return !daemonSet.DeletionTimestamp.IsZero() }
