package controller

import (
	"context"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"example.com/workbook/04-goop/internal/plan"
)

// spread brings the DaemonSets in line with the plan: first those that lose nodes, then those that gain some, then
// those that are not there yet. What stands in the way of one does not keep the others from being made.
func (r *GoopReconciler) spread(ctx context.Context, seen *facts) (bool, error) {
	if seen.unreadable != "" && !seen.goop.Ended() {
		return false, nil
	}
	lose, gain, missing := changes(seen)
	if len(lose) > 0 && unrecorded(seen) {
		// Work that is taken away has to be cleaned up after: that is recorded first.
		seen.narrow = true
		return r.remember(ctx, seen)
	}
	for _, round := range lose {
		if mended, err := r.try(seen, r.place(ctx, seen.goop, seen.rounds[round.Number], round)); mended || err != nil {
			return mended, err
		}
	}
	if len(gain)+len(missing) == 0 {
		return false, nil
	}
	if err := r.confirm(ctx, seen.goop); err != nil {
		return false, err
	}
	for _, round := range gain {
		if mended, err := r.try(seen, r.place(ctx, seen.goop, seen.rounds[round.Number], round)); mended || err != nil {
			return mended, err
		}
	}
	for _, round := range missing {
		err := r.createDaemonSet(ctx, seen.goop, round, desiredRound(seen.goop, round, r.Images))
		if mended, err := r.try(seen, err); mended || err != nil {
			return mended, err
		}
	}
	return false, nil
}

// try tells whether a change was made. If it was refused, others may yet be made.
func (r *GoopReconciler) try(seen *facts, err error) (bool, error) {
	if err == nil {
		return true, nil
	}
	return false, seen.takeRefusal(err)
}

// changes are the rounds that are not as planned: those that lose nodes, those that only gain some, and those that
// have no DaemonSet.
func changes(seen *facts) (lose, gain, missing []plan.Round) {
	planned := map[int]bool{}
	for _, round := range seen.plan {
		planned[round.Number] = true
		daemonSet := seen.rounds[round.Number]
		switch is := seen.placed[round.Number]; {
		case daemonSet == nil:
			missing = append(missing, round)
		// Somebody has deleted it. It is made anew when it is gone.
		case isGoing(daemonSet):
		case seen.changed[round.Number] || !gains(is, round):
			lose = append(lose, round)
		case !same(is, round):
			gain = append(gain, round)
		}
	}
	for _, number := range slices.Sorted(maps.Keys(seen.rounds)) {
		if none := (plan.Round{Number: number}); !planned[number] && !isGoing(seen.rounds[number]) && (seen.changed[number] || !same(seen.placed[number], none)) {
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

// clear takes away what is left of work that is over, when the TTL is: first the DaemonSets, then the record, unless
// a cleanup is to read it.
func (r *GoopReconciler) clear(ctx context.Context, seen *facts) (bool, error) {
	ttl := seen.goop.Spec.TTLSecondsAfterFinished
	if !seen.goop.Ended() || ttl == nil || seen.goop.Status.CompletionTime == nil {
		return false, nil
	}
	if left := seen.goop.Status.CompletionTime.Add(time.Duration(*ttl) * time.Second).Sub(seen.now); left > 0 {
		seen.comeBack(left)
		return false, nil
	}
	if removed, err := r.stop(ctx, seen); removed || err != nil {
		return removed, err
	}
	if len(seen.rounds) > 0 || len(seen.goop.Spec.CleanupCmd) > 0 {
		return false, nil
	}
	if numbers := slices.Sorted(maps.Keys(seen.shards)); len(numbers) > 0 {
		return true, r.remove(ctx, seen.shards[numbers[len(numbers)-1]], "ConfigMap")
	}
	return false, nil
}

func isGoing(daemonSet *appsv1.DaemonSet) bool { return !daemonSet.DeletionTimestamp.IsZero() }
