package controller

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
	"example.com/workbook/04-goop/internal/record"
	"example.com/workbook/04-goop/internal/worker"
)

// recordAll takes the steps that write the record, and then writes the end of the work to the status. It returns true if the
// other steps of a reconciliation have to wait: something has changed, or a write has failed for the first time and may
// succeed when it is repeated. Any other failed write of the record keeps no work from ending.
func (r *GoopReconciler) recordAll(ctx context.Context, observed *observation) (bool, error) {
	failing := r.recordRetries.lastFailure(observed.request(), observed.goop).err != nil
	// 1. The start is recorded. A suspension clears it.
	changed, unrecorded := r.recordStart(ctx, observed)
	if changed || isRepeatedFirst(unrecorded, failing) {
		return true, unrecorded
	}
	if unrecorded != nil && !observed.stopping && observed.damage == nil {
		return false, unrecorded
	}
	// 2. The results of workers are recorded. Then the Goop becomes Complete or Failed, before anything is deleted.
	if changed, err := r.recordWork(ctx, observed); changed || isRepeatedFirst(err, failing) {
		return true, err
	} else if err != nil {
		unrecorded = err
	}
	if changed, err := r.finish(ctx, observed, failing); changed || err != nil {
		return changed || isRepeatedFirst(err, failing), err
	}
	return false, unrecorded
}

// isRepeatedFirst reports whether a failed write is repeated before work ends in spite of it.
func isRepeatedFirst(err error, failing bool) bool {
	return isStale(err) || (err != nil && !isRejected(err) && !failing)
}

// finish writes the end of the work to the status. Workers that have finished until then are recorded first, except after
// the deadline if the record cannot be written. failing: it could not be written before.
func (r *GoopReconciler) finish(ctx context.Context, observed *observation, failing bool) (bool, error) {
	end, left := endOf(observed)
	observed.requeueAfter(left)
	switch {
	case end == nil:
		return false, nil
	case len(unrecordedResults(observed)) > 0:
		if err := r.updateRecord(ctx, observed, nil); err == nil || isRepeatedFirst(err, failing) || end.reason != v1alpha1.ReasonDeadlineExceeded {
			return err == nil, err
		}
	}
	status := endStatus(observed, *end)
	// The uids of lost shards stay in the status while something is unrecorded, because the cleanup needs to know that the
	// record is incomplete.
	if anyUnrecorded(observed) {
		status.RecordUIDs = observed.goop.Status.RecordUIDs
	}
	err := r.reportStatus(ctx, observed, status)
	return err == nil, err
}

// recordStart records when the work is started or resumed. On a suspension it records the suspension and the workers that
// have finished, because the other workers are about to be deleted.
func (r *GoopReconciler) recordStart(ctx context.Context, observed *observation) (bool, error) {
	switch started := !observed.record.Started.IsZero(); {
	case observed.goop.Ended():
	case observed.damage != nil:
		return false, &rejectedError{reason: observed.damage.reason, message: observed.damage.message}
	case observed.stopping && started:
		err := r.updateRecord(ctx, observed, (*record.Record).Suspend)
		return err == nil, err
	case !observed.stopping && !isStarted(observed):
		if err := r.confirm(ctx, observed.goop); err != nil {
			return false, err
		}
		// The clock of the replica that has reported the suspension may be ahead.
		start := observed.now
		if suspended := conditionOf(observed.goop.Status.Conditions, v1alpha1.ConditionSuspended).LastTransitionTime; suspended.After(start) {
			start = suspended.Time
		}
		err := r.updateRecord(ctx, observed, func(r *record.Record) { r.Start(start) })
		return err == nil, err
	}
	return false, nil
}

// recordWork records which workers have finished. For a cleanup it also records where work has begun and where the
// cleanup has ended. The write is throttled, unless the result of a pod is about to be lost.
func (r *GoopReconciler) recordWork(ctx context.Context, observed *observation) (bool, error) {
	unreadable := observed.damage != nil && !isLost(observed)
	if (unreadable && observed.goop.DeletionTimestamp.IsZero()) || !anyUnrecorded(observed) {
		return false, nil
	}
	// Where work has begun can be recorded later, too, unless its pod is being deleted.
	urgent := observed.work.vanishing || observed.cleaning.vanishing || slices.ContainsFunc(unrecordedNodes(observed), func(node string) bool {
		return observed.stopping || observed.losing || !observed.work.begun[node] || observed.work.leaving[node]
	})
	if wait := r.throttle.wait(observed.key(), writesRecord, observed.now); wait > 0 && !urgent {
		observed.requeueAfter(wait)
		return false, nil
	}
	if err := r.updateRecord(ctx, observed, nil); err != nil {
		return false, err
	}
	r.throttle.wrote(observed.key(), writesRecord, observed.now)
	return true, nil
}

// recordEnd records for a Goop with a cleanupCmd that the work has ended: all nodes where work has begun are recorded,
// and no more work begins. DaemonSets that disappear after that do not count as lost. If they have disappeared before,
// and nothing says where work had begun, that stays in the record. If the API server rejects the record, the cleanup
// continues without it.
func (r *GoopReconciler) recordEnd(ctx context.Context, observed *observation) (bool, error) {
	goop := observed.goop
	if !isOver(goop) || len(goop.Spec.CleanupCmd) == 0 || observed.record.Started.IsZero() || observed.damage != nil || isUntraceable(observed) {
		return false, nil
	}
	err := r.updateRecord(ctx, observed, (*record.Record).Suspend)
	if isRejected(err) {
		return false, nil
	}
	return err == nil, err
}

// anyUnrecorded reports whether there is anything to record.
func anyUnrecorded(observed *observation) bool {
	return len(unrecordedResults(observed))+len(unrecordedNodes(observed)) > 0 ||
		(len(observed.goop.Spec.CleanupCmd) > 0 && len(observed.cleaning.ended) > 0)
}

// addWork adds all unrecorded results to the record, in the order of node and round.
func addWork(r *record.Record, observed *observation) {
	results := unrecordedResults(observed)
	for _, place := range sortedPlaces(results) {
		ended := results[place]
		r.Finish(record.Finish{Place: place, ExitCode: ended.ExitCode, Tries: ended.Tries, Output: ended.Output})
	}
	if len(observed.goop.Spec.CleanupCmd) == 0 {
		return
	}
	for _, node := range unrecordedNodes(observed) {
		r.Begin(node)
	}
	for _, place := range sortedPlaces(observed.cleaning.ended) {
		ended := observed.cleaning.ended[place]
		r.Clean(place.Node, ended.ExitCode, ended.Tries)
	}
}

func sortedPlaces(ended map[plan.Place]worker.Record) []plan.Place {
	return slices.SortedFunc(maps.Keys(ended), func(a, b plan.Place) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Round, b.Round))
	})
}

// updateRecord records everything that is known about the work, and then makes one more change, which may be nil. It writes the
// first shard that has changed. The next reconciliation writes the others, because it observes the same unrecorded results. The
// observation does not change: only what is written counts as recorded. The record has retries of its own, because an observed
// result may be lost by the time another failed write is retried.
func (r *GoopReconciler) updateRecord(ctx context.Context, observed *observation, change func(*record.Record)) error {
	updated, _ := copyRecord(observed)
	addWork(updated, observed)
	if change != nil {
		change(updated)
	}
	changed := updated.Changed()
	if len(changed) == 0 {
		return fmt.Errorf("recording the work of Goop %s: there is nothing to record", observed.goop.Name)
	}
	// One that hangs leaves half of the time for work that has to end.
	if deadline, limited := ctx.Deadline(); limited {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer stop()
	}
	err := r.recordRetries.try(ctx, observed.request(), observed.goop, func(ctx context.Context) error {
		return r.writeShard(ctx, observed, changed[0])
	})
	if err == nil {
		ctrl.LoggerFrom(ctx).V(1).Info("Recorded", "succeeded", updated.Succeeded, "failed", updated.Failed)
	}
	return err
}

// writeShard updates a shard, or creates it if it is new.
func (r *GoopReconciler) writeShard(ctx context.Context, observed *observation, shard record.Shard) error {
	live, ok := observed.shards[shard.Number]
	if !ok {
		return r.createShard(ctx, observed, shard)
	}
	// The copy has the resourceVersion that was read, so that an update of another writer is not lost.
	target := live.DeepCopy()
	target.Data[record.Key] = shard.Text
	if err := r.Update(ctx, target, client.FieldOwner(fieldOwner)); err != nil {
		return classify("updating ConfigMap "+live.Name, err)
	}
	return nil
}

// createShard creates a shard and writes its uid to the status. From then on the shard is trusted. Node names are written
// to it only after that.
func (r *GoopReconciler) createShard(ctx context.Context, observed *observation, shard record.Shard) error {
	goop := observed.goop
	if shard.Number >= record.MaxShards {
		return &rejectedError{reason: v1alpha1.ReasonApplyFailed, message: fmt.Sprintf("the record has %d ConfigMaps, which is as many as there can be", record.MaxShards)}
	}
	if record.NamesNodes(shard.Text) {
		shard.Text = observed.record.State()
	}
	if err := r.confirm(ctx, goop); err != nil {
		return err
	}
	desired, live := desiredShard(goop, shard), &corev1.ConfigMap{}
	if found, err := findFor(ctx, r.Client, goop, live, desired.Name); err != nil {
		return err
	} else if found {
		return r.discardShard(ctx, live)
	}
	if err := createDependent(ctx, r.Client, fieldOwner, desired); err != nil {
		return err
	}
	observed.shards[shard.Number], observed.uids = desired, append(observed.uids, string(desired.UID))
	observed.record, _ = copyRecord(observed)
	if err := r.reportStatus(ctx, observed, desiredStatus(observed)); err != nil {
		return err
	}
	if shard.Number == 0 && len(observed.rounds)+len(observed.pods) == 0 {
		r.memory.unbegun.Store(observed.key(), goop.UID)
	}
	return nil
}
