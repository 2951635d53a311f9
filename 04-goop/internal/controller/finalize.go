package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

// setFinalizers replaces the list of finalizers of a Goop. A merge patch replaces the whole list, so the patch has the
// resourceVersion: otherwise a finalizer that another client adds at the same time would be lost.
func (r *GoopReconciler) setFinalizers(ctx context.Context, goop *v1alpha1.Goop, finalizers []string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": goop.UID, "resourceVersion": goop.ResourceVersion, "finalizers": finalizers,
	}})
	if err != nil {
		return fmt.Errorf("writing the finalizers of Goop %s: %w", goop.Name, err)
	}
	stored := goop.DeepCopy()
	if err := r.Patch(ctx, stored, client.RawPatch(types.MergePatchType, body), client.FieldOwner(fieldOwner)); err != nil {
		return classify("changing the finalizers of Goop "+goop.Name, err)
	}
	if slices.Contains(stored.Finalizers, v1alpha1.CleanupFinalizer) != slices.Contains(finalizers, v1alpha1.CleanupFinalizer) {
		return changedByAdmission("metadata.finalizers", "Goop "+goop.Name)
	}
	return nil
}

// ensureFinalizer adds the finalizer before there is anything to clean up. It also adds the finalizer again if a user has
// removed it, for example with a manifest without finalizers. A Goop that may not run work now, because it is suspended or
// has ended, needs the finalizer only if work may have begun before: if it has a record.
func (r *GoopReconciler) ensureFinalizer(ctx context.Context, observed *observation) (bool, error) {
	needed := !observed.stopping || len(observed.uids) > 0
	if len(observed.goop.Spec.CleanupCmd) == 0 || !needed || hasFinalizer(observed.goop) {
		return false, nil
	}
	err := r.setFinalizers(ctx, observed.goop, append(slices.Clip(observed.goop.Finalizers), v1alpha1.CleanupFinalizer))
	return err == nil, err
}

// finalize takes one step of the deletion of a Goop with a cleanupCmd, and reports whether it changed something.
func (r *GoopReconciler) finalize(ctx context.Context, observed *observation) (bool, error) {
	// 1. The outcome of the cleanup is in the status, or there is no cleanupCmd, for example because the finalizer comes
	// from a copied manifest: the Goop is released.
	if isConcluded(observed.goop) || len(observed.goop.Spec.CleanupCmd) == 0 {
		return true, r.release(ctx, observed)
	}
	// 2. cleanupTimeoutSeconds was exceeded.
	left := cleanupTimeLeft(observed)
	if left <= 0 {
		return true, r.conclude(ctx, observed)
	}
	observed.requeueAfter(left)
	changed, err := r.cleanUp(ctx, observed)
	// In a namespace that is being deleted no object can be created.
	if errors.Is(err, errNamespaceTerminating) {
		return true, r.conclude(ctx, observed)
	}
	// The pods have access to the host that the operator no longer permits. They are deleted, even if the cleanup fails.
	if err != nil && observed.hostRejected && !isStale(err) {
		ended, endErr := r.deleteRounds(ctx, observed)
		return ended, errors.Join(err, endErr)
	}
	return changed, err
}

// cleanUp ends the work, runs the cleanup on the nodes where work has begun, and records both. It goes on if the record
// cannot be written.
func (r *GoopReconciler) cleanUp(ctx context.Context, observed *observation) (bool, error) {
	// 1. The nodes where work has begun are recorded, and those where the cleanup has ended. Then the record states that no
	// more work begins: DaemonSets that disappear after that were deleted by the operator.
	failing := r.recordRetries.lastFailure(observed.request(), observed.goop).err != nil
	changed, unrecorded := r.recordWork(ctx, observed)
	if !changed && unrecorded == nil {
		changed, unrecorded = r.recordEnd(ctx, observed)
	}
	if changed || isRepeatedFirst(unrecorded, failing) {
		return changed, unrecorded
	}
	if isRejected(unrecorded) {
		unrecorded = nil
	}
	// 2. The work ends.
	if changed, err := r.endWork(ctx, observed); changed || err != nil {
		return changed, err
	}
	// 3. What is not recorded counts as long as it can be observed.
	addUnrecorded(observed)
	// 4. All nodes are cleaned up.
	if !workersLeft(observed) && !anyToClean(observed) {
		if err := r.confirmPods(ctx, observed); err != nil {
			return false, err
		}
		return true, r.conclude(ctx, observed)
	}
	// 5. The cleanup runs on the nodes where work has begun.
	changed, err := r.ensureCleanup(ctx, observed)
	return changed, errors.Join(err, unrecorded)
}

// addUnrecorded adds to the observed record the nodes that could not be recorded.
func addUnrecorded(observed *observation) {
	for _, node := range unrecordedNodes(observed) {
		observed.record.Begin(node)
	}
}

// endWork deletes the DaemonSets of the work. Before that they lose their nodes, and their controller has to observe it:
// otherwise it could create a pod after the cleanup. Those that cannot lose their nodes are deleted at once, and so are
// those that the Goop no longer owns, because their events do not trigger a reconciliation. Then orphaned workers end.
func (r *GoopReconciler) endWork(ctx context.Context, observed *observation) (bool, error) {
	for _, number := range slices.Sorted(maps.Keys(observed.rounds)) {
		daemonSet, none := observed.rounds[number], plan.Round{Number: number}
		switch owned := metav1.IsControlledBy(daemonSet, observed.goop); {
		case isBeingDeleted(daemonSet):
			continue
		case owned && !same(observed.placed[number], none):
			if changed, err := r.placeRound(ctx, observed, none); changed || (err != nil && !isRejected(err)) {
				return changed, err
			}
		case owned && !isObserved(daemonSet):
			continue
		}
		return true, deleteDependent(ctx, r.Client, daemonSet)
	}
	return false, r.endOrphans(ctx, observed, nil)
}

// ensureCleanup creates or updates the DaemonSet of the cleanup. Its nodes are those that exist and where the cleanup has
// not ended. Where it has ended, it does not run again, even if its pod is deleted. A node that joins again gets a pod.
func (r *GoopReconciler) ensureCleanup(ctx context.Context, observed *observation) (bool, error) {
	// It was created before the operator was restarted without --allow-host-access.
	if observed.cleanup != nil && observed.hostRejected && !isBeingDeleted(observed.cleanup) {
		return true, deleteDependent(ctx, r.Client, observed.cleanup)
	}
	// While the garbage collector orphans the dependents of the Goop, it would also orphan a new DaemonSet.
	orphaning := controllerutil.ContainsFinalizer(observed.goop, metav1.FinalizerOrphanDependents)
	if workersLeft(observed) || orphaning {
		return false, nil
	}
	round := plan.Round{Nodes: nodesWithoutWork(observed, nodesToClean(observed))}
	switch {
	case len(round.Nodes) == 0:
		return false, nil
	case observed.cleanup == nil:
		if err := r.confirmPods(ctx, observed); err != nil {
			return false, err
		}
		return r.createDaemonSet(ctx, observed, round, desiredCleanup(observed.goop, round.Nodes, r.images), observed.cleaning.ending)
	}
	// A node may return with the pod of a deleted DaemonSet. A second pod would run the cleanup twice at the same time.
	round.Nodes = slices.DeleteFunc(round.Nodes, func(node string) bool { return observed.cleaning.ending[node] })
	if same(observed.cleanupRound, round) || isBeingDeleted(observed.cleanup) {
		return false, nil
	}
	return r.place(ctx, observed.goop, observed.cleanup, round, podLabels(observed.goop, v1alpha1.RoleCleanup))
}

// conclude writes the outcome of the cleanup to the status, and sends the Event. It comes before any release, because the
// outcome is computed from objects that are deleted after it.
func (r *GoopReconciler) conclude(ctx context.Context, observed *observation) error {
	addUnrecorded(observed)
	return r.reportStatus(ctx, observed, concludedStatus(observed))
}

// release removes the finalizer, first from the record and then from the Goop. Before that it deletes the cleanup's
// DaemonSet, which would otherwise create pods again. It does not rely on the garbage collector, because another
// controller's finalizer may keep the Goop, or the DaemonSet may have been orphaned. If the API server rejects the deletion,
// the Goop is released anyway. If the record cannot be written, the Goop is kept until cleanupTimeoutSeconds expires.
func (r *GoopReconciler) release(ctx context.Context, observed *observation) error {
	if err := r.confirm(ctx, observed.goop); err != nil {
		return err
	}
	if observed.cleanup != nil && !isBeingDeleted(observed.cleanup) {
		if err := deleteDependent(ctx, r.Client, observed.cleanup); err != nil && !isRejected(err) {
			return err
		}
	}
	if err := r.releaseRecord(ctx, observed); err != nil && (cleanupTimeLeft(observed) > 0 || isStale(err)) {
		return err
	}
	finalizers := slices.DeleteFunc(slices.Clone(observed.goop.Finalizers), func(name string) bool { return name == v1alpha1.CleanupFinalizer })
	return r.setFinalizers(ctx, observed.goop, finalizers)
}
