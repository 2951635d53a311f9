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
)

// recordFacts are the record of a Goop and its ConfigMaps, the shards.
//
// A user who may create ConfigMaps can create one with the name, the labels, the owner and the field manager of a shard.
// What a user of Goops cannot write is a Goop's status. So a shard is created without the name of any node, its uid is
// written to the status, and only then is work recorded in it. A ConfigMap that names nodes, and whose uid is not in the
// status, is not believed.
type recordFacts struct {
	record *record.Record
	// shards are the ConfigMaps that are believed, by number, and uids those of all that there are to be: it is longer
	// than the status's while a new one is not in it yet.
	shards map[int]*corev1.ConfigMap
	uids   []string
	// found are all ConfigMaps with the name and label of a shard, forged the number of that which is not believed.
	found  map[int]*corev1.ConfigMap
	forged int
	// lost is the name of a shard that is gone, and unreadable why one that is there cannot be read; else empty. Then
	// record says what the rest says.
	lost, unreadable string
}

// shardName is the name of a ConfigMap of the record.
func shardName(goop string, number int) string { return goop + "-record-" + strconv.Itoa(number) }

// shardNumber is the number of the shard of that name; false if it is not that of a shard.
func shardNumber(goop, name string) (int, bool) {
	number, err := strconv.Atoi(strings.TrimPrefix(name, goop+"-record-"))
	return number, err == nil && number >= 0 && name == shardName(goop, number)
}

// readRecord reads the shards of the record.
func (r *GoopReconciler) readRecord(ctx context.Context, seen *facts) (err error) {
	goop := seen.goop
	if seen.found, err = r.shardsOf(ctx, seen.key()); err != nil {
		return err
	}
	if err := r.releaseAbandoned(ctx, seen.key(), withoutOwner(seen.found, goop)); err != nil {
		return err
	}
	seen.shards, seen.uids, seen.forged = map[int]*corev1.ConfigMap{}, slices.Clone(goop.Status.RecordUIDs), -1
	for number, uid := range seen.uids {
		shard := seen.found[number]
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
			seen.lost = shardName(goop.Name, number)
			continue
		}
		seen.shards[number] = shard
	}
	seen.addNewShards()
	seen.record, err = record.Read(seen.texts())
	switch {
	case len(seen.shards) < len(seen.uids):
		seen.record = record.Salvage(seen.texts(), len(seen.uids))
	case err != nil:
		seen.record, seen.unreadable = record.Salvage(seen.texts(), len(seen.uids)), err.Error()
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
func (f *facts) addNewShards() {
	earlier := len(f.uids) == 0 && f.goop.Status.StartTime != nil
	for number := len(f.uids); f.found[number] != nil && metav1.IsControlledBy(f.found[number], f.goop); number++ {
		shard := f.found[number]
		if !earlier && record.NamesNodes(shard.Data[record.Key]) {
			f.forged = number
			return
		}
		f.shards[number], f.uids = shard, append(f.uids, string(shard.UID))
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
	err := r.APIReader.Get(ctx, types.NamespacedName{Namespace: goop.Namespace, Name: shardName(goop.Name, number)}, shard)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", shardName(goop.Name, number), err)
	}
	return shard, nil
}

func (f *recordFacts) texts() map[int]string {
	texts := make(map[int]string, len(f.shards))
	for number, shard := range f.shards {
		texts[number] = shard.Data[record.Key]
	}
	return texts
}

// copyRecord reads the record once more, to be added to: what was seen stays as it was seen.
func (f *recordFacts) copyRecord() *record.Record {
	if f.unreadable == "" && len(f.shards) == len(f.uids) {
		if again, err := record.Read(f.texts()); err == nil {
			return again
		}
	}
	return record.Salvage(f.texts(), len(f.uids))
}

// desiredShard is a ConfigMap of the record. For a cleanup it has the Goop's finalizer: where a Goop is deleted in the
// foreground, or with its namespace, it would go before the cleanup has read it.
func desiredShard(goop *v1alpha1.Goop, shard record.Shard) *corev1.ConfigMap {
	meta := outlasting(childMeta(goop, shardName(goop.Name, shard.Number), childLabels(goop)))
	if len(goop.Spec.CleanupCmd) > 0 {
		meta.Finalizers = []string{v1alpha1.CleanupFinalizer}
	}
	return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{record.Key: shard.Text}}
}

// begin records when the work is started or resumed, and that it is suspended: then also what is finished, as the
// rest is about to be taken away.
func (r *GoopReconciler) begin(ctx context.Context, seen *facts) (bool, error) {
	if seen.goop.Ended() || seen.lost != "" {
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

// recordShards writes the uids of new shards to the status: from then on they are believed.
func (r *GoopReconciler) recordShards(ctx context.Context, seen *facts) (bool, error) {
	if len(seen.uids) == len(seen.goop.Status.RecordUIDs) || (seen.goop.Ended() && seen.goop.DeletionTimestamp.IsZero()) {
		return false, nil
	}
	return true, r.writeStatus(ctx, seen, desiredStatus(seen))
}

// remember records which workers have finished, and for a cleanup where work has begun. It may have to wait for its
// turn, but not if what it knows is about to be lost.
func (r *GoopReconciler) remember(ctx context.Context, seen *facts) (bool, error) {
	if (seen.unreadable != "" && seen.goop.DeletionTimestamp.IsZero()) || !due(seen) {
		return false, nil
	}
	hurry := seen.tale.fading || (seen.narrow && unrecorded(seen)) || seen.damaged()
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
	return anyNotBegun(seen, seen.tale.seen) || (seen.narrow && unrecorded(seen)) || anyNotBegun(seen, mayHaveBegun(seen))
}

// over tells whether the results of workers are of no use any more.
func over(seen *facts) bool {
	return seen.goop.Ended() || !seen.goop.DeletionTimestamp.IsZero() || seen.lost != ""
}

// damaged tells whether the record does not say all that was recorded.
func (f *recordFacts) damaged() bool { return f.lost != "" || f.unreadable != "" }

// mayHaveBegun are the nodes where work may have begun according to all but the record; none if the record is whole. It
// rather has a node too many than one too few.
func mayHaveBegun(seen *facts) map[string]bool {
	if !seen.damaged() || seen.cleanup != nil {
		return nil
	}
	nodes := map[string]bool{}
	for _, node := range seen.eligible {
		nodes[node] = true
	}
	for _, round := range seen.placed {
		if !round.Everywhere {
			for _, node := range round.Nodes {
				nodes[node] = true
			}
		}
	}
	for _, failure := range seen.goop.Status.Failures {
		nodes[failure.Node] = true
	}
	for i := range seen.pods {
		if node := seen.pods[i].Spec.NodeName; node != "" {
			nodes[node] = true
		}
	}
	return nodes
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
	begun := []map[string]bool{seen.tale.seen, mayHaveBegun(seen)}
	if seen.narrow {
		begun = append(begun, seen.tale.begun)
	}
	for _, nodes := range begun {
		for _, node := range slices.Sorted(maps.Keys(nodes)) {
			r.Begin(node)
		}
	}
}

// writeRecord writes the first shard that has changed. The next pass writes the others: it finds the same out of
// order. What was seen stays as it was seen: until it is written, nothing else is known.
func (r *GoopReconciler) writeRecord(ctx context.Context, seen *facts, add func(*record.Record)) error {
	updated := seen.copyRecord()
	add(updated)
	changed := updated.Changed()
	if len(changed) == 0 {
		return fmt.Errorf("recording the work of Goop %s: there is nothing to record", seen.goop.Name)
	}
	shard := changed[0]
	live, ok := seen.shards[shard.Number]
	if !ok {
		return r.createShard(ctx, seen, shard)
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
func (r *GoopReconciler) createShard(ctx context.Context, seen *facts, shard record.Shard) error {
	if seen.forged == shard.Number {
		return &refusedError{
			reason:  v1alpha1.ReasonNameConflict,
			message: fmt.Sprintf("ConfigMap %s was not written by this operator: it is left as it is", shardName(seen.goop.Name, shard.Number)),
		}
	}
	if record.NamesNodes(shard.Text) {
		shard.Text = ""
	}
	if err := r.confirm(ctx, seen.goop); err != nil {
		return err
	}
	return r.create(ctx, seen.goop, desiredShard(seen.goop, shard), "ConfigMap")
}

// releaseRecord removes the finalizer from the record: the cleanup is done. The last shard is the first: what is left
// after a crash has the start of the record.
func (r *GoopReconciler) releaseRecord(ctx context.Context, seen *facts) error {
	all := maps.Clone(seen.found)
	maps.Copy(all, seen.shards)
	for _, number := range slices.Backward(slices.Sorted(maps.Keys(all))) {
		shard := all[number]
		if !metav1.IsControlledBy(shard, seen.goop) && seen.shards[number] != shard {
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

// releaseAbandoned removes the finalizer from records that are being deleted and whose Goop is gone, because a user has
// removed its finalizer: nothing else would ever do so. There may be another Goop of that name.
func (r *GoopReconciler) releaseAbandoned(ctx context.Context, key types.NamespacedName, found map[int]*corev1.ConfigMap) error {
	abandoned := slices.DeleteFunc(slices.Sorted(maps.Keys(found)), func(number int) bool {
		return found[number].DeletionTimestamp.IsZero() || !controllerutil.ContainsFinalizer(found[number], v1alpha1.CleanupFinalizer)
	})
	if len(abandoned) == 0 {
		return nil
	}
	var live v1alpha1.Goop
	if err := r.APIReader.Get(ctx, key, &live); client.IgnoreNotFound(err) != nil {
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
	if err := r.APIReader.Get(ctx, key, &live); err != nil {
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
