package controller

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
	"example.com/workbook/04-goop/internal/record"
	"example.com/workbook/04-goop/internal/worker"
)

// recordStart records when the work is started or resumed, and that it is suspended: then also what is finished, because
// the rest is about to be deleted.
func (r *GoopReconciler) recordStart(ctx context.Context, observed *observation) (bool, error) {
	if observed.goop.Ended() || observed.lost != "" {
		return false, nil
	}
	if observed.unreadable != "" {
		return false, &rejectedError{
			reason:  v1alpha1.ReasonRecordUnreadable,
			message: fmt.Sprintf("the record in ConfigMaps %s and so on cannot be read, and nothing is done until it can: %s", shardName(observed.goop.Name, 0), observed.unreadable),
		}
	}
	switch started := !observed.record.Started.IsZero(); {
	case observed.stopping && started:
		return true, r.updateRecord(ctx, observed, func(r *record.Record) {
			addWork(r, observed)
			r.Suspend()
		})
	case !observed.stopping && !started:
		return true, r.updateRecord(ctx, observed, func(r *record.Record) { r.Start(observed.now) })
	}
	return false, nil
}

// recordShards writes the uids of new shards of the record to the status: from then on they are believed.
func (r *GoopReconciler) recordShards(ctx context.Context, observed *observation) (bool, error) {
	if len(observed.uids) == len(observed.goop.Status.RecordUIDs) || (observed.goop.Ended() && observed.goop.DeletionTimestamp.IsZero()) {
		return false, nil
	}
	return true, r.reportStatus(ctx, observed, desiredStatus(observed))
}

// recordWork records which workers have finished, and for a cleanup where work has begun and where the cleanup has ended.
// It may have to wait for its turn, but not if what is to be recorded is about to be lost.
func (r *GoopReconciler) recordWork(ctx context.Context, observed *observation) (bool, error) {
	if (observed.unreadable != "" && observed.goop.DeletionTimestamp.IsZero()) || !anyUnrecorded(observed) {
		return false, nil
	}
	urgent := observed.work.vanishing || observed.cleaning.vanishing || isDamaged(observed) || (observed.stopping && beginsUnrecorded(observed))
	if wait := r.pace.wait(observed.key(), writesRecord, observed.now); wait > 0 && !urgent {
		observed.requeueAfter(wait)
		return false, nil
	}
	if err := r.writeRecord(ctx, observed); err != nil {
		return false, err
	}
	r.pace.wrote(observed.key(), writesRecord, observed.now)
	return true, nil
}

// writeRecord records all that is known of the work.
func (r *GoopReconciler) writeRecord(ctx context.Context, observed *observation) error {
	return r.updateRecord(ctx, observed, func(r *record.Record) { addWork(r, observed) })
}

// anyUnrecorded tells whether there is anything to be recorded. What comes after the end does not count.
func anyUnrecorded(observed *observation) bool {
	if len(observed.work.ended) > 0 && !ignoresResults(observed) {
		return true
	}
	if len(observed.goop.Spec.CleanupCmd) == 0 {
		return false
	}
	return len(observed.cleaning.ended) > 0 || anyNotBegun(observed, observed.work.begun) ||
		(observed.stopping && beginsUnrecorded(observed)) || anyNotBegun(observed, mayHaveBegun(observed))
}

// beginsUnrecorded tells whether there is a node where work may begin at any moment, that has to be cleaned up and that
// the record does not name. It has to be recorded before work is deleted.
func beginsUnrecorded(observed *observation) bool {
	return len(observed.goop.Spec.CleanupCmd) > 0 && anyNotBegun(observed, observed.work.mayBegin)
}

// anyNotBegun tells whether there is one among these nodes of which the record does not say that work has begun there.
func anyNotBegun(observed *observation, nodes map[string]bool) bool {
	for node := range nodes {
		if !observed.record.Begun[node] {
			return true
		}
	}
	return false
}

// mayHaveBegun are the nodes where work may have begun according to all but the record; none if the record is whole. It
// has rather a node too many than one too few.
func mayHaveBegun(observed *observation) map[string]bool {
	if !isDamaged(observed) || observed.cleanup != nil {
		return nil
	}
	nodes := map[string]bool{}
	for _, node := range observed.eligible {
		nodes[node] = true
	}
	for _, round := range observed.placed {
		for _, node := range round.Nodes {
			nodes[node] = nodes[node] || !round.Everywhere
		}
	}
	for _, failure := range observed.goop.Status.Failures {
		nodes[failure.Node] = true
	}
	for i := range observed.pods {
		nodes[observed.pods[i].Spec.NodeName] = true
	}
	maps.DeleteFunc(nodes, func(node string, may bool) bool { return node == "" || !may })
	return nodes
}

// addWork adds what is to be recorded to the record, by node and round.
func addWork(r *record.Record, observed *observation) {
	if !ignoresResults(observed) {
		for _, place := range sortedPlaces(observed.work.ended) {
			ended := observed.work.ended[place]
			r.Finish(record.Finish{Place: place, ExitCode: ended.ExitCode, Tries: ended.Tries, Output: ended.Output})
		}
	}
	if len(observed.goop.Spec.CleanupCmd) == 0 {
		return
	}
	begun := []map[string]bool{observed.work.begun, mayHaveBegun(observed)}
	if observed.stopping {
		begun = append(begun, observed.work.mayBegin)
	}
	for _, nodes := range begun {
		for _, node := range slices.Sorted(maps.Keys(nodes)) {
			r.Begin(node)
		}
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

// updateRecord writes the first shard that has changed. The next reconciliation writes the others: it finds the same
// unrecorded. The observation stays as it is: until it is written, nothing else is known.
func (r *GoopReconciler) updateRecord(ctx context.Context, observed *observation, add func(*record.Record)) error {
	updated := copyRecord(observed)
	add(updated)
	changed := updated.Changed()
	if len(changed) == 0 {
		return fmt.Errorf("recording the work of Goop %s: there is nothing to record", observed.goop.Name)
	}
	shard := changed[0]
	live, ok := observed.shards[shard.Number]
	if !ok {
		return r.createShard(ctx, observed, shard)
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

// createShard creates a shard. What it says of nodes is written when its uid is in the status.
func (r *GoopReconciler) createShard(ctx context.Context, observed *observation, shard record.Shard) error {
	if observed.forged == shard.Number {
		return &rejectedError{
			reason:  v1alpha1.ReasonNameConflict,
			message: fmt.Sprintf("ConfigMap %s was not written by this operator: it is left as it is", shardName(observed.goop.Name, shard.Number)),
		}
	}
	if record.NamesNodes(shard.Text) {
		shard.Text = ""
	}
	if err := r.confirm(ctx, observed.goop); err != nil {
		return err
	}
	return ensureDependent(ctx, r.Client, fieldOwner, observed.goop, &corev1.ConfigMap{}, desiredShard(observed.goop, shard))
}
