// Package controller spreads the work of Goops over nodes: a DaemonSet for each round, and a record of what is finished.
//
// Its files in the order of reading. A function calls functions of its own file and of later ones only:
//
//	goop_controller.go  Reconcile, step by step
//	watches.go          what triggers a reconciliation, and what the cache holds
//	observe.go          what one reconciliation reads, and the plan that it makes of it
//	finalize.go         what happens before a Goop with a cleanupCmd goes
//	rounds.go           the DaemonSets of the work
//	record.go           what is recorded, and when
//	shards.go           the ConfigMaps of the record: read, believed, released
//	apply.go            how a dependent is written
//	report.go           how the status and Events are written
//	pace.go             how often record and status are written
//	resources.go        spec and plan → desired dependents
//	affinity.go         nodes ↔ the affinity of a DaemonSet
//	outcome.go          what was observed → how the cleanup went
//	status.go           what was observed → conditions
//	observation.go      what one reconciliation observed
//	pods.go             what pods say of themselves
//	nodes.go            which nodes may be used
//	conditions.go       how a condition is set
//	errors.go           the classes of errors
//	messages.go         texts of conditions and Events
package controller

import (
	"context"
	"errors"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// fieldOwner is the name under which the API server records the fields that this controller owns.
const fieldOwner = "goop-controller"

// GoopReconciler spreads the work of Goops over nodes, and reports what it observes.
type GoopReconciler struct {
	client.Client
	// apiReader reads past the cache.
	apiReader client.Reader
	recorder  events.EventRecorder
	clock     clock.PassiveClock

	images Images
	// allowHostAccess grants what Goops ask for in spec.host.
	allowHostAccess bool

	pace pace
}

// NewGoopReconciler returns a reconciler that reads and writes through c, and through apiReader past the cache.
// allowHostAccess grants what Goops ask for in spec.host.
func NewGoopReconciler(c client.Client, apiReader client.Reader, recorder events.EventRecorder, clock clock.PassiveClock, images Images, allowHostAccess bool) *GoopReconciler {
	return &GoopReconciler{Client: c, apiReader: apiReader, recorder: recorder, clock: clock, images: images, allowHostAccess: allowHostAccess}
}

// Get is for what is read past the cache. Goops are patched for their finalizer only. The goops/finalizers are for
// blockOwnerDeletion in an owner reference, which the admission plugin OwnerReferencesPermissionEnforcement allows to
// no one else.
//
// +kubebuilder:rbac:groups=goop.example.com,resources=goops,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=goop.example.com,resources=goops/status,verbs=patch
// +kubebuilder:rbac:groups=goop.example.com,resources=goops/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=daemonsets,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=list;watch;create;update;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile compares the actual state of one Goop with its spec and corrects the first thing that differs: the change
// itself triggers the next reconciliation. If nothing differs, it reports. It does the same whatever triggered it, and it
// may be called at any time and any number of times.
func (r *GoopReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	// 1. Fetch.
	var goop v1alpha1.Goop
	if err := r.Get(ctx, req.NamespacedName, &goop); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		r.pace.forget(req.NamespacedName)
		return ctrl.Result{}, r.releaseAbandoned(ctx, req.NamespacedName)
	}
	// Without our finalizer there is nothing to do: the garbage collector deletes what a deleted Goop owns.
	if !goop.DeletionTimestamp.IsZero() && !hasFinalizer(&goop) {
		return ctrl.Result{}, nil
	}

	// 2. Observe.
	observed, err := r.observe(ctx, &goop)

	// 3. Finalize if it is being deleted, else ensure the dependents.
	changed := false
	switch {
	case err != nil:
	case !goop.DeletionTimestamp.IsZero():
		changed, err = r.finalize(ctx, observed)
	default:
		changed, err = r.ensureDependents(ctx, observed)
	}
	if (changed && err == nil) || isStale(err) {
		return ctrl.Result{}, err
	}
	if errors.Is(err, errNamespaceTerminating) {
		return ctrl.Result{}, nil
	}

	// 4. Report, also what failed.
	observed.failure = failureOf(err)
	if reportErr := r.report(ctx, observed); reportErr != nil {
		return ctrl.Result{}, errors.Join(err, reportErr)
	}

	// 5. Requeue for what no event will announce.
	return requeue(observed, err)
}

// ensureDependents takes step after step until one has changed something. The steps build on each other: after one that
// failed there is no other.
func (r *GoopReconciler) ensureDependents(ctx context.Context, observed *observation) (bool, error) {
	// 1. With a cleanup to come, the Goop may not go unnoticed.
	if changed, err := r.ensureFinalizer(ctx, observed); changed || err != nil {
		return changed, err
	}
	// 2. The start is recorded; a suspension ends it.
	if changed, err := r.recordStart(ctx, observed); changed || err != nil {
		return changed, err
	}
	// 3. The record is known by its uids, before work is in it.
	if changed, err := r.recordShards(ctx, observed); changed || err != nil {
		return changed, err
	}
	// 4. What workers report is recorded.
	if changed, err := r.recordWork(ctx, observed); changed || err != nil {
		return changed, err
	}
	// 5. Complete or Failed, before anything is deleted.
	if changed, err := r.finish(ctx, observed); changed || err != nil {
		return changed, err
	}
	// 6. After the TTL nothing is left.
	if changed, err := r.deleteAfterTTL(ctx, observed); changed || err != nil {
		return changed, err
	}
	// 7. The DaemonSets are as planned.
	return r.ensureRounds(ctx, observed)
}

// ensureFinalizer adds the finalizer, before there is anything to clean up.
func (r *GoopReconciler) ensureFinalizer(ctx context.Context, observed *observation) (bool, error) {
	if len(observed.goop.Spec.CleanupCmd) == 0 || observed.stopping || hasFinalizer(observed.goop) {
		return false, nil
	}
	return true, r.setFinalizers(ctx, observed.goop, append(slices.Clip(observed.goop.Finalizers), v1alpha1.CleanupFinalizer))
}

// finish writes the end of the work, once it is known. What has finished until then is recorded first.
func (r *GoopReconciler) finish(ctx context.Context, observed *observation) (bool, error) {
	end, left := endOf(observed)
	observed.requeueAfter(left)
	switch {
	case end == nil:
		return false, nil
	case len(observed.work.ended) > 0 && !ignoresResults(observed):
		return true, r.writeRecord(ctx, observed)
	}
	return true, r.reportStatus(ctx, observed, endStatus(observed, *end))
}

// report writes the status if it changed, but not more often than the pace allows, except for the first.
func (r *GoopReconciler) report(ctx context.Context, observed *observation) error {
	r.checkPods(observed)
	status := desiredStatus(observed)
	if apiequality.Semantic.DeepEqual(status, observed.goop.Status) {
		ctrl.LoggerFrom(ctx).V(1).Info("Nothing to change", "running", status.Running)
		return nil
	}
	first := len(observed.goop.Status.Conditions) == 0
	if wait := r.pace.wait(observed.key(), writesStatus, observed.now); wait > 0 && !first {
		observed.requeueAfter(wait)
		return nil
	}
	if err := r.reportStatus(ctx, observed, status); err != nil {
		return err
	}
	if !first {
		r.pace.wrote(observed.key(), writesStatus, observed.now)
	}
	return nil
}

// checkPods notes whether no pod is created for work that is to be done. No event will announce that.
func (r *GoopReconciler) checkPods(observed *observation) {
	lacking := lacksPods(observed)
	idle := r.pace.idles(observed.key(), lacking, observed.now)
	observed.noPods = idle >= podsPatience
	if lacking {
		observed.requeueAfter(podsPatience - idle)
	}
}

// requeue decides when to try again. The deletion of an object that has a name of ours is an event, and host access is
// granted by a restart; an edit of the record is an event too. All else that failed is retried at the queue's own pace.
func requeue(observed *observation, err error) (ctrl.Result, error) {
	for _, reason := range []string{v1alpha1.ReasonNameConflict, v1alpha1.ReasonHostAccessRefused, v1alpha1.ReasonRecordUnreadable} {
		if found, others := without(err, reason); found {
			err = others
		}
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: observed.requeue}, nil
}
