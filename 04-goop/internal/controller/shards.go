package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/record"
)

// observeRecord reads the ConfigMaps of the record, which are called shards, from the cache. Shards that the cache lacks
// are read from the API server, and so are all of them if those of the cache cannot be read.
//
// A user with the permission to create ConfigMaps can create one with the name, labels, owner and field manager of a
// shard. Users of Goops cannot write the status of a Goop. So a shard is created without node names, the uid in the API
// server's response is written to the status, and only then is work recorded in the shard. A ConfigMap whose uid is not
// in the status is not trusted. A user with the permission to update ConfigMaps can still edit a shard: the README
// describes the consequences.
func (r *GoopReconciler) observeRecord(ctx context.Context, observed *observation) (err error) {
	goop := observed.goop
	if observed.found, err = r.shardsOf(ctx, observed.key()); err != nil {
		return err
	}
	unbegun, _ := r.memory.unbegun.Load(observed.key())
	observed.unbegun = unbegun == goop.UID
	observed.uids = slices.Clone(goop.Status.RecordUIDs)
	for number, uid := range observed.uids {
		shard := observed.found[number]
		// After the end of the work the record is deleted, unless a cleanup needs it.
		if uid == "" || (!isShard(shard, uid) && goop.Ended() && goop.DeletionTimestamp.IsZero()) {
			continue
		}
		if !isShard(shard, uid) {
			if shard, err = r.readShardUncached(ctx, goop, number); err != nil {
				return err
			}
		}
		if !isShard(shard, uid) {
			message := fmt.Sprintf("ConfigMap %s of the record was deleted: it is not known which workers have finished", shardName(goop.Name, number))
			observed.damage = &failure{v1alpha1.ReasonRecordLost, message}
			continue
		}
		observed.shards[number] = shard
	}
	if readRecord(observed) == nil {
		return nil
	}
	// The cache of ConfigMaps may be behind that of Goops.
	for number, shard := range observed.shards {
		live, err := r.readShardUncached(ctx, goop, number)
		if err != nil {
			return err
		}
		if isShard(live, string(shard.UID)) {
			observed.shards[number] = live
		}
	}
	if err := readRecord(observed); err != nil {
		message := fmt.Sprintf("the record in ConfigMaps %s and so on cannot be read, and no work begins until it can: %v", shardName(goop.Name, 0), err)
		observed.damage = &failure{v1alpha1.ReasonRecordUnreadable, message}
	}
	return nil
}

// readRecord reads what is valid in the shards. The error says why that is not all of what these shards recorded. A record that
// has less than the status, which is computed from it, lacks entries: a user has removed them.
func readRecord(observed *observation) (err error) {
	observed.record, err = copyRecord(observed)
	status := &observed.goop.Status
	switch {
	// It is known which shards no longer exist.
	case len(observed.shards) < len(observed.uids):
		return nil
	case err == nil && len(observed.shards) > 0 && observed.record.Succeeded+observed.record.Failed < status.Succeeded+status.Failed:
		return errors.New("it lacks results that the status counts")
	}
	return err
}

// copyRecord reads the record from the observed shards. Entries can be added to it without a change of the observation. A shard
// without a text is left out: a user has removed it, and nothing may be added.
func copyRecord(observed *observation) (*record.Record, error) {
	texts := make(map[int]string, len(observed.shards))
	for number, shard := range observed.shards {
		if text := shard.Data[record.Key]; text != "" {
			texts[number] = text
		}
	}
	return record.Read(texts, len(observed.uids))
}

// isShardOf reports whether a Goop owns a shard, or trusts it.
func isShardOf(goop *v1alpha1.Goop, shard *corev1.ConfigMap) bool {
	return metav1.IsControlledBy(shard, goop) || slices.Contains(goop.Status.RecordUIDs, string(shard.UID))
}

func isShard(shard *corev1.ConfigMap, uid string) bool {
	return shard != nil && string(shard.UID) == uid
}

// shardsOf returns the ConfigMaps in the cache that have the name of a shard, and its label or its owner. They are not copies, so they
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

// shardNumber returns the number of the shard with that name; false if it is not the name of a shard.
func shardNumber(goop, name string) (int, bool) {
	number, err := strconv.Atoi(strings.TrimPrefix(name, goop+"-record-"))
	return number, err == nil && number >= 0 && name == shardName(goop, number)
}

// releaseRecord removes the finalizer from the record after the cleanup. It begins with the last shard, so that the
// beginning of the record is still there after a crash.
func (r *GoopReconciler) releaseRecord(ctx context.Context, observed *observation) error {
	all := maps.Clone(observed.found)
	maps.Copy(all, observed.shards)
	for _, number := range slices.Backward(slices.Sorted(maps.Keys(all))) {
		shard := all[number]
		if !isShardOf(observed.goop, shard) {
			continue
		}
		if err := r.releaseShard(ctx, shard); err != nil {
			return err
		}
	}
	return nil
}

// releaseAbandoned removes the finalizer from shards that are being deleted and whose Goop no longer exists, because a user has
// removed the Goop's finalizer. No other controller would remove it. goop is the Goop of that name in the cache, if there is one.
func (r *GoopReconciler) releaseAbandoned(ctx context.Context, goop *v1alpha1.Goop, found map[int]*corev1.ConfigMap) error {
	var live *v1alpha1.Goop
	for _, number := range slices.Backward(slices.Sorted(maps.Keys(found))) {
		shard := found[number]
		if shard.DeletionTimestamp.IsZero() || !controllerutil.ContainsFinalizer(shard, v1alpha1.CleanupFinalizer) || isShardOf(goop, shard) {
			continue
		}
		// The cache may lack a Goop that exists.
		if live == nil {
			live = &v1alpha1.Goop{}
			if err := r.apiReader.Get(ctx, client.ObjectKeyFromObject(goop), live); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("reading Goop %s: %w", goop.Name, err)
			}
		}
		if isShardOf(live, shard) {
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
	err := r.Update(ctx, shard, client.FieldOwner(fieldOwner))
	if err == nil || isGone(err) {
		return nil
	}
	return classify("removing the finalizer from ConfigMap "+shard.Name, err)
}

// discardShard deletes a shard whose uid is not in the status: either the operator crashed before it wrote the uid, or a
// user created the ConfigMap. The two cases cannot be distinguished, so the shard is not trusted. A ConfigMap that the
// operator cannot have written is left unchanged.
func (r *GoopReconciler) discardShard(ctx context.Context, shard *corev1.ConfigMap) error {
	text, isText := shard.Data[record.Key]
	switch {
	case !isText || len(shard.Data)+len(shard.BinaryData) > 1 || record.NamesNodes(text):
		return &rejectedError{
			reason:  v1alpha1.ReasonNameConflict,
			message: fmt.Sprintf("ConfigMap %s was not written by this operator: it is left as it is", shard.Name),
		}
	case controllerutil.ContainsFinalizer(shard, v1alpha1.CleanupFinalizer):
		return r.releaseShard(ctx, shard)
	}
	err := r.Delete(ctx, shard, client.Preconditions{UID: new(shard.UID), ResourceVersion: new(shard.ResourceVersion)})
	if err == nil || isGone(err) {
		return nil
	}
	return classify("deleting ConfigMap "+shard.Name, err)
}
