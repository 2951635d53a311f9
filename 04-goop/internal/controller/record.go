package controller

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
	"example.com/workbook/04-goop/internal/record"
	"example.com/workbook/04-goop/internal/worker"
)

// shardName is the name of a ConfigMap of the record.
func shardName(goop string, number int) string { return goop + "-record-" + strconv.Itoa(number) }

// shardNumber is the number of the shard of that name; false if it is not that of a shard.
func shardNumber(goop, name string) (int, bool) {
	number, err := strconv.Atoi(strings.TrimPrefix(name, goop+"-record-"))
	return number, err == nil && number >= 0 && name == shardName(goop, number)
}

// observeRecord reads the shards of the record.
func (r *GoopReconciler) observeRecord(ctx context.Context, observed *observation) (err error) {
	goop := observed.goop
	if observed.found, err = r.shardsOf(ctx, observed.key()); err != nil {
		return err
	}
	if err := r.releaseShardsOf(ctx, observed.key(), withoutOwner(observed.found, goop)); err != nil {
		return err
	}
	observed.uids = slices.Clone(goop.Status.RecordUIDs)
	for number, uid := range observed.uids {
		shard := observed.found[number]
		// After the end the record is deleted, unless a cleanup is to read it.
		if uid == "" || (!isShard(shard, uid) && goop.Ended() && goop.DeletionTimestamp.IsZero()) {
			continue
		}
		if !isShard(shard, uid) {
			if shard, err = r.shardPastTheCache(ctx, goop, number); err != nil {
				return err
			}
		}
		if !isShard(shard, uid) {
			observed.lost = shardName(goop.Name, number)
			continue
		}
		observed.shards[number] = shard
	}
	addNewShards(observed)
	observed.record, err = record.Read(texts(observed))
	switch {
	case len(observed.shards) < len(observed.uids):
		observed.record = record.Salvage(texts(observed), len(observed.uids))
	case err != nil:
		observed.record, observed.unreadable = record.Salvage(texts(observed), len(observed.uids)), err.Error()
	}
	return nil
}

// withoutOwner are the shards of other Goops that had this name.
func withoutOwner(found map[int]*corev1.ConfigMap, goop *v1alpha1.Goop) map[int]*corev1.ConfigMap {
	others := map[int]*corev1.ConfigMap{}
	for number, shard := range found {
		if !metav1.IsControlledBy(shard, goop) && !slices.Contains(goop.Status.RecordUIDs, string(shard.UID)) {
			others[number] = shard
		}
	}
	return others
}

// addNewShards adds the shards whose uids are not in the status yet. Those of an earlier version of the operator are
// known by the start time, which only an operator can have written.
func addNewShards(observed *observation) {
	earlier := len(observed.uids) == 0 && observed.goop.Status.StartTime != nil
	for number := len(observed.uids); observed.found[number] != nil && metav1.IsControlledBy(observed.found[number], observed.goop); number++ {
		shard := observed.found[number]
		if !earlier && record.NamesNodes(shard.Data[record.Key]) {
			observed.forged = number
			return
		}
		observed.shards[number], observed.uids = shard, append(observed.uids, string(shard.UID))
	}
}

func isShard(shard *corev1.ConfigMap, uid string) bool {
	return shard != nil && string(shard.UID) == uid
}

// shardsOf finds the ConfigMaps that have the name and the label of a shard, in the cache. They are not copied: nobody
// may change them.
func (r *GoopReconciler) shardsOf(ctx context.Context, goop types.NamespacedName) (map[int]*corev1.ConfigMap, error) {
	var list corev1.ConfigMapList
	err := r.List(ctx, &list, client.InNamespace(goop.Namespace), client.MatchingFields{goopIndex: goop.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing ConfigMaps of Goop %s: %w", goop.Name, err)
	}
	found := map[int]*corev1.ConfigMap{}
	for i := range list.Items {
		if number, ok := shardNumber(goop.Name, list.Items[i].Name); ok {
			found[number] = &list.Items[i]
		}
	}
	return found, nil
}

// shardPastTheCache reads a shard that the cache does not have: a user may have removed its label, or the cache may be
// behind. It is nil if there is none.
func (r *GoopReconciler) shardPastTheCache(ctx context.Context, goop *v1alpha1.Goop, number int) (*corev1.ConfigMap, error) {
	shard := &corev1.ConfigMap{}
	err := r.apiReader.Get(ctx, types.NamespacedName{Namespace: goop.Namespace, Name: shardName(goop.Name, number)}, shard)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", shardName(goop.Name, number), err)
	}
	return shard, nil
}

func texts(observed *observation) map[int]string {
	texts := make(map[int]string, len(observed.shards))
	for number, shard := range observed.shards {
		texts[number] = shard.Data[record.Key]
	}
	return texts
}

// copyRecord reads the record once more, to be added to: what was seen stays as it was observed.
func copyRecord(observed *observation) *record.Record {
	if observed.unreadable == "" && len(observed.shards) == len(observed.uids) {
		if again, err := record.Read(texts(observed)); err == nil {
			return again
		}
	}
	return record.Salvage(texts(observed), len(observed.uids))
}

// desiredShard is a ConfigMap of the record. For a cleanup it has the Goop's finalizer: where a Goop is deleted in the
// foreground, or with its namespace, it would go before the cleanup has read it.
func desiredShard(goop *v1alpha1.Goop, shard record.Shard) *corev1.ConfigMap {
	meta := withoutBlocking(dependentMeta(goop, shardName(goop.Name, shard.Number), dependentLabels(goop)))
	if len(goop.Spec.CleanupCmd) > 0 {
		meta.Finalizers = []string{v1alpha1.CleanupFinalizer}
	}
	return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{record.Key: shard.Text}}
}

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
	return createDependent(ctx, r.Client, fieldOwner, observed.goop, desiredShard(observed.goop, shard))
}

// releaseRecord removes the finalizer from the record: the cleanup is done. The last shard is the first: what is left
// after a crash has the start of the record.
func (r *GoopReconciler) releaseRecord(ctx context.Context, observed *observation) error {
	all := maps.Clone(observed.found)
	maps.Copy(all, observed.shards)
	for _, number := range slices.Backward(slices.Sorted(maps.Keys(all))) {
		shard := all[number]
		if !metav1.IsControlledBy(shard, observed.goop) && observed.shards[number] != shard {
			continue
		}
		if err := r.releaseShard(ctx, shard); err != nil {
			return err
		}
	}
	return nil
}

// releaseShard removes the finalizer from one shard.
func (r *GoopReconciler) releaseShard(ctx context.Context, shard *corev1.ConfigMap) error {
	shard = shard.DeepCopy()
	if !controllerutil.RemoveFinalizer(shard, v1alpha1.CleanupFinalizer) {
		return nil
	}
	if err := r.Update(ctx, shard, client.FieldOwner(fieldOwner)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizer from ConfigMap %s: %w", shard.Name, err)
	}
	return nil
}

// releaseAbandoned removes the finalizer from the record of a Goop that is gone: see releaseShardsOf.
func (r *GoopReconciler) releaseAbandoned(ctx context.Context, goop types.NamespacedName) error {
	found, err := r.shardsOf(ctx, goop)
	if err != nil {
		return err
	}
	return r.releaseShardsOf(ctx, goop, found)
}

// releaseShardsOf removes the finalizer from those shards that are being deleted and whose Goop is gone, because a user
// has removed its finalizer: nothing else would ever do so. There may be another Goop of that name.
func (r *GoopReconciler) releaseShardsOf(ctx context.Context, key types.NamespacedName, found map[int]*corev1.ConfigMap) error {
	abandoned := slices.DeleteFunc(slices.Sorted(maps.Keys(found)), func(number int) bool {
		return found[number].DeletionTimestamp.IsZero() || !controllerutil.ContainsFinalizer(found[number], v1alpha1.CleanupFinalizer)
	})
	if len(abandoned) == 0 {
		return nil
	}
	var live v1alpha1.Goop
	if err := r.apiReader.Get(ctx, key, &live); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Goop %s: %w", key.Name, err)
	}
	for _, number := range slices.Backward(abandoned) {
		shard := found[number]
		if live.UID != "" && (metav1.IsControlledBy(shard, &live) || slices.Contains(live.Status.RecordUIDs, string(shard.UID))) {
			continue
		}
		if err := r.releaseShard(ctx, shard); err != nil {
			return err
		}
	}
	return nil
}

// confirm reads past the cache whether the Goop is still what it is taken for. It is called before anything is made
// that might run work, and before the Goop goes: work that has ended is not done again because a cache is behind.
func (r *GoopReconciler) confirm(ctx context.Context, goop *v1alpha1.Goop) error {
	var live v1alpha1.Goop
	key := types.NamespacedName{Namespace: goop.Namespace, Name: goop.Name}
	if err := r.apiReader.Get(ctx, key, &live); err != nil {
		if apierrors.IsNotFound(err) {
			return errStale
		}
		return fmt.Errorf("reading Goop %s: %w", goop.Name, err)
	}
	if live.UID != goop.UID || live.Spec.Suspend != goop.Spec.Suspend || live.Ended() != goop.Ended() ||
		live.DeletionTimestamp.IsZero() != goop.DeletionTimestamp.IsZero() || !slices.Equal(live.Status.RecordUIDs, goop.Status.RecordUIDs) {
		return errStale
	}
	return nil
}
