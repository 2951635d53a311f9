package controller

import (
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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/record"
)

// observeRecord reads the ConfigMaps of the record, which are called shards.
//
// A user who may create ConfigMaps can create one with the name, the labels, the owner and the field manager of a shard.
// What users of Goops cannot write is the status of a Goop. So a shard is created without the name of any node, its uid is
// written to the status, and only then is work recorded in it. A ConfigMap that names nodes, and whose uid is not in the
// status, is not believed. Who may edit ConfigMaps can still edit a shard: the README says what follows from that.
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

func isShard(shard *corev1.ConfigMap, uid string) bool {
	return shard != nil && string(shard.UID) == uid
}

// shardsOf finds the ConfigMaps that have the name and the label of a shard, in the cache. They are not copied, so they
// must not be changed.
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
// behind. It is nil if there is none. It lists, because the operator may not get
// ConfigMaps.
func (r *GoopReconciler) shardPastTheCache(ctx context.Context, goop *v1alpha1.Goop, number int) (*corev1.ConfigMap, error) {
	name := shardName(goop.Name, number)
	var list corev1.ConfigMapList
	err := r.apiReader.List(ctx, &list, client.InNamespace(goop.Namespace), client.MatchingFields{metav1.ObjectNameField: name})
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", name, err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	return &list.Items[0], nil
}

func texts(observed *observation) map[int]string {
	texts := make(map[int]string, len(observed.shards))
	for number, shard := range observed.shards {
		texts[number] = shard.Data[record.Key]
	}
	return texts
}

// copyRecord reads the record once more, to be added to: the observation stays as it is.
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

// shardName is the name of a ConfigMap of the record.
func shardName(goop string, number int) string { return goop + "-record-" + strconv.Itoa(number) }

// shardNumber is the number of the shard of that name; false if it is not that of a shard.
func shardNumber(goop, name string) (int, bool) {
	number, err := strconv.Atoi(strings.TrimPrefix(name, goop+"-record-"))
	return number, err == nil && number >= 0 && name == shardName(goop, number)
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
