package controller

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// confirm checks against the API server, not the cache, that the Goop is still in the observed state. It is called before
// anything is created or extended that may run work, and before the Goop is released: a stale cache must not make
// finished work run again.
func (r *GoopReconciler) confirm(ctx context.Context, goop *v1alpha1.Goop) error {
	var live v1alpha1.Goop
	if err := r.apiReader.Get(ctx, client.ObjectKeyFromObject(goop), &live); err != nil {
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

// confirmPods checks against the API server that the cache has all pods of the work, or those that options select. The
// DaemonSet controller may have created one a moment before it observed that its DaemonSet has no nodes, or no longer exists,
// and the cache may have that first.
func (r *GoopReconciler) confirmPods(ctx context.Context, observed *observation, options ...client.ListOption) error {
	known := make(map[types.UID]bool, len(observed.pods))
	for i := range observed.pods {
		known[observed.pods[i].UID] = true
	}
	goop := observed.goop
	var live corev1.PodList
	err := r.apiReader.List(ctx, &live, append(options, client.InNamespace(goop.Namespace), client.MatchingLabels{
		v1alpha1.LabelGoop: goop.Name, v1alpha1.LabelRole: v1alpha1.RoleWork,
	})...)
	if err != nil {
		return fmt.Errorf("listing Pods of Goop %s: %w", goop.Name, err)
	}
	for i := range live.Items {
		if !known[live.Items[i].UID] {
			return errStale
		}
	}
	return nil
}

// confirmRecord checks that the cache has the newest state of the record. Otherwise work could begin again whose end another
// replica has recorded: the cache may have the DaemonSet that this replica took from the node, and not the entry.
func (r *GoopReconciler) confirmRecord(ctx context.Context, observed *observation) error {
	for number, shard := range observed.shards {
		live, err := r.readShardUncached(ctx, observed.goop, number)
		if err != nil {
			return err
		}
		if live == nil || live.UID != shard.UID || live.ResourceVersion != shard.ResourceVersion {
			return errStale
		}
	}
	return nil
}

// readShardUncached reads a shard from the API server, because the cache does not have it: a user may have removed its
// label and its owner, or the cache may be stale. It returns nil if there is none. It uses list, because the operator has
// no permission to get ConfigMaps.
func (r *GoopReconciler) readShardUncached(ctx context.Context, goop *v1alpha1.Goop, number int) (*corev1.ConfigMap, error) {
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
