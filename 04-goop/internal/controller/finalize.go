package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

func hasFinalizer(goop *v1alpha1.Goop) bool {
	return controllerutil.ContainsFinalizer(goop, v1alpha1.CleanupFinalizer)
}

// setFinalizers writes the finalizers of a Goop, as they were seen with one more or one less. A merge patch replaces
// the whole list: the resourceVersion keeps others' from being lost.
func (r *GoopReconciler) setFinalizers(ctx context.Context, goop *v1alpha1.Goop, finalizers []string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": goop.UID, "resourceVersion": goop.ResourceVersion, "finalizers": finalizers,
	}})
	if err != nil {
		return fmt.Errorf("writing the finalizers of Goop %s: %w", goop.Name, err)
	}
	if err := r.Patch(ctx, goop.DeepCopy(), client.RawPatch(types.MergePatchType, body), client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("changing the finalizers of Goop %s: %w", goop.Name, err)
	}
	return nil
}

// finalize takes one step of the deletion of a Goop with a cleanupCmd, and tells whether that changed something.
func (r *GoopReconciler) finalize(ctx context.Context, observed *observation) (bool, error) {
	// 1. How the cleanup went is in the status: the Goop goes.
	if isConcluded(observed.goop) {
		return true, r.release(ctx, observed)
	}
	// 2. The time for the cleanup was exceeded.
	left := cleanupTimeLeft(observed)
	if left <= 0 {
		return true, r.conclude(ctx, observed)
	}
	observed.requeueAfter(left)
	changed, err := r.cleanUp(ctx, observed)
	// In a namespace that is being deleted nothing is created any more.
	if errors.Is(err, errNamespaceTerminating) {
		return true, r.conclude(ctx, observed)
	}
	return changed, err
}

// cleanUp ends the work, runs the cleanup where work has begun, and sees to it that both are recorded.
func (r *GoopReconciler) cleanUp(ctx context.Context, observed *observation) (bool, error) {
	// 1. The record is known by its uids.
	if changed, err := r.recordShards(ctx, observed); changed || err != nil {
		return changed, err
	}
	// 2. Where work has begun is recorded, and where the cleanup has ended.
	if changed, err := r.recordWork(ctx, observed); changed || err != nil {
		return changed, err
	}
	// 3. The work ends.
	if changed, err := r.deleteRounds(ctx, observed); changed || err != nil {
		return changed, err
	}
	// 4. All is cleaned up.
	if !workersLeft(observed) && !anyToClean(observed) {
		return true, r.conclude(ctx, observed)
	}
	// 5. The cleanup runs where work was.
	return r.ensureCleanup(ctx, observed)
}

// ensureCleanup makes the DaemonSet of the cleanup match the nodes that are there and where it has not ended. Where it
// has ended, it does not run again, whatever becomes of its pod; a node that joins again gets its pod.
func (r *GoopReconciler) ensureCleanup(ctx context.Context, observed *observation) (bool, error) {
	// It was created before the operator was restarted without --allow-host-access.
	if observed.cleanup != nil && observed.hostRejected && !isBeingDeleted(observed.cleanup) {
		return true, deleteDependent(ctx, r.Client, observed.cleanup)
	}
	// While the garbage collector removes the Goop from the owners of its dependents, it would do so with this one.
	orphaning := controllerutil.ContainsFinalizer(observed.goop, metav1.FinalizerOrphanDependents)
	if workersLeft(observed) || orphaning {
		return false, nil
	}
	round := plan.Round{Nodes: nodesToClean(observed)}
	switch {
	case len(round.Nodes) == 0:
		return false, nil
	case observed.cleanup == nil:
		return true, r.createDaemonSet(ctx, observed.goop, round, desiredCleanup(observed.goop, round.Nodes, r.images))
	case same(observed.cleanupRound, round) || isBeingDeleted(observed.cleanup):
		return false, nil
	}
	return r.place(ctx, observed.goop, observed.cleanup, round)
}

// conclude writes how the cleanup went to the status, and announces it. Only then is anything released: what it is
// known from is gone afterwards.
func (r *GoopReconciler) conclude(ctx context.Context, observed *observation) error {
	return r.reportStatus(ctx, observed, concludedStatus(observed))
}

// release removes the finalizer, from the record first.
func (r *GoopReconciler) release(ctx context.Context, observed *observation) error {
	if err := r.confirm(ctx, observed.goop); err != nil {
		return err
	}
	if err := r.releaseRecord(ctx, observed); err != nil {
		return err
	}
	finalizers := slices.DeleteFunc(slices.Clone(observed.goop.Finalizers), func(name string) bool { return name == v1alpha1.CleanupFinalizer })
	return r.setFinalizers(ctx, observed.goop, finalizers)
}
