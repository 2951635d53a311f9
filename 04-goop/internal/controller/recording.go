package controller

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
	"example.com/workbook/04-goop/internal/record"
)

// shardName is the name of a ConfigMap of the record.
func shardName(goop string, number int) string { return goop + "-record-" + strconv.Itoa(number) }

// desiredShard is a ConfigMap of the record. For a cleanup it has the Goop's finalizer: where a Goop is deleted in the
// foreground, or with its namespace, it would go before the cleanup has read it.
func desiredShard(goop *v1alpha1.Goop, shard record.Shard) *corev1.ConfigMap {
	meta := outlasting(childMeta(goop, shardName(goop.Name, shard.Number), childLabels(goop)))
	if len(goop.Spec.CleanupCmd) > 0 {
		meta.Finalizers = []string{v1alpha1.CleanupFinalizer}
	}
	return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{record.Key: shard.Text}}
}

// giveAway takes the finalizer from the record: the cleanup is done.
func (r *GoopReconciler) giveAway(ctx context.Context, seen *facts) error {
	for number := range len(seen.shards) {
		shard := seen.shards[number].DeepCopy()
		if !controllerutil.RemoveFinalizer(shard, v1alpha1.CleanupFinalizer) {
			continue
		}
		if err := r.Update(ctx, shard, client.FieldOwner(fieldOwner)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("taking the finalizer from ConfigMap %s: %w", shard.Name, err)
		}
	}
	return nil
}

// begin records when the work is started or resumed, and that it is suspended: then also what is finished, as the
// rest is about to be taken away.
func (r *GoopReconciler) begin(ctx context.Context, seen *facts) (bool, error) {
	if seen.goop.Ended() {
		return false, nil
	}
	if seen.unreadable != "" {
		return false, &refusedError{
			reason:  v1alpha1.ReasonRecordUnreadable,
			message: fmt.Sprintf("the record in ConfigMaps %s and so on cannot be read, and nothing is done until it can: %s", shardName(seen.goop.Name, 0), seen.unreadable),
		}
	}
	switch started := !seen.record.Started.IsZero(); {
	case seen.narrow && started:
		return true, r.writeRecord(ctx, seen, func(r *record.Record) {
			note(r, seen)
			r.Suspend()
		})
	case !seen.narrow && !started:
		return true, r.writeRecord(ctx, seen, func(r *record.Record) { r.Start(seen.now) })
	}
	return false, nil
}

// remember records which workers have finished, and for a cleanup where work has begun. It may have to wait for its
// turn, but not if what it knows is about to be lost.
func (r *GoopReconciler) remember(ctx context.Context, seen *facts) (bool, error) {
	if seen.unreadable != "" || !due(seen) {
		return false, nil
	}
	hurry := seen.tale.fading || (seen.narrow && unrecorded(seen))
	if wait := r.pace.wait(seen.key(), writesRecord, seen.now); wait > 0 && !hurry {
		seen.comeBack(wait)
		return false, nil
	}
	if err := r.writeRecord(ctx, seen, func(r *record.Record) { note(r, seen) }); err != nil {
		return false, err
	}
	r.pace.wrote(seen.key(), writesRecord, seen.now)
	return true, nil
}

// due tells whether there is anything to be recorded. What comes after the end does not count.
func due(seen *facts) bool {
	if len(seen.tale.ended) > 0 && !over(seen) {
		return true
	}
	if len(seen.goop.Spec.CleanupCmd) == 0 {
		return false
	}
	return anyNotBegun(seen, seen.tale.seen) || (seen.narrow && unrecorded(seen))
}

// over tells whether the results of workers are of no use any more.
func over(seen *facts) bool {
	return seen.goop.Ended() || !seen.goop.DeletionTimestamp.IsZero()
}

// unrecorded tells whether there is a node where work may begin at any moment, that has to be cleaned up and that the
// record does not know. It has to be recorded before work is taken away.
func unrecorded(seen *facts) bool {
	return len(seen.goop.Spec.CleanupCmd) > 0 && anyNotBegun(seen, seen.tale.begun)
}

// anyNotBegun tells whether there is one among these nodes of which the record does not say that work has begun there.
func anyNotBegun(seen *facts, nodes map[string]bool) bool {
	for node := range nodes {
		if !seen.record.Begun[node] {
			return true
		}
	}
	return false
}

// note adds what is to be recorded to the record, by node and round.
func note(r *record.Record, seen *facts) {
	if !over(seen) {
		places := slices.SortedFunc(maps.Keys(seen.tale.ended), func(a, b plan.Place) int {
			return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Round, b.Round))
		})
		for _, place := range places {
			ended := seen.tale.ended[place]
			r.Finish(record.Finish{Place: place, ExitCode: ended.ExitCode, Tries: ended.Tries, Output: ended.Output})
		}
	}
	if len(seen.goop.Spec.CleanupCmd) == 0 {
		return
	}
	for _, node := range slices.Sorted(maps.Keys(seen.tale.seen)) {
		r.Begin(node)
	}
	if seen.narrow {
		for _, node := range slices.Sorted(maps.Keys(seen.tale.begun)) {
			r.Begin(node)
		}
	}
}

// writeRecord writes the first shard that has changed. The next pass writes the others: it finds the same out of
// order. What was seen stays as it was seen: until it is written, nothing else is known.
func (r *GoopReconciler) writeRecord(ctx context.Context, seen *facts, add func(*record.Record)) error {
	updated, err := record.Read(textsOf(seen.shards))
	if err != nil {
		return fmt.Errorf("reading the record of Goop %s: %w", seen.goop.Name, err)
	}
	add(updated)
	changed := updated.Changed()
	if len(changed) == 0 {
		return fmt.Errorf("recording the work of Goop %s: there is nothing to record", seen.goop.Name)
	}
	shard := changed[0]
	live, ok := seen.shards[shard.Number]
	if !ok {
		if err := r.confirm(ctx, seen.goop); err != nil {
			return err
		}
		return r.create(ctx, seen.goop, desiredShard(seen.goop, shard), "ConfigMap")
	}
	// The version that was read is in it: another writer's would be lost.
	target := live.DeepCopy()
	target.Data = map[string]string{record.Key: shard.Text}
	if err := r.Update(ctx, target, client.FieldOwner(fieldOwner)); err != nil {
		return classify("updating ConfigMap "+live.Name, err)
	}
	ctrl.LoggerFrom(ctx).V(1).Info("Recorded", "succeeded", updated.Succeeded, "failed", updated.Failed)
	return nil
}

// confirm reads past the cache whether the Goop is still what it is taken for. It is called before anything is made
// that might run work: work that has ended is not done again because a cache is behind.
func (r *GoopReconciler) confirm(ctx context.Context, goop *v1alpha1.Goop) error {
	var live v1alpha1.Goop
	key := types.NamespacedName{Namespace: goop.Namespace, Name: goop.Name}
	if err := r.APIReader.Get(ctx, key, &live); err != nil {
		if apierrors.IsNotFound(err) {
			return errStale
		}
		return fmt.Errorf("reading Goop %s: %w", goop.Name, err)
	}
	if live.UID != goop.UID || live.Spec.Suspend != goop.Spec.Suspend || live.Ended() != goop.Ended() ||
		live.DeletionTimestamp.IsZero() != goop.DeletionTimestamp.IsZero() {
		return errStale
	}
	return nil
}
