// Package controller spreads the work of Goops over nodes. It keeps one DaemonSet for each round, and a record of the
// workers that have finished.
//
// The files are listed in reading order. A function calls only functions of its own file and of later ones:
//
//	goop_controller.go  Reconcile, step by step
//	watches.go          what triggers a reconciliation, and what the cache holds
//	observe.go          what one reconciliation reads, and the plan that follows from it
//	finalize.go         what happens before a Goop with a cleanupCmd is removed
//	rounds.go           which DaemonSets of the work are created, changed and deleted: by the plan, host access and the TTL
//	placement.go        how a DaemonSet is created and gets its nodes, and how orphaned workers are ended
//	record.go           what is recorded, and when; how the end of the work is written to the status
//	shards.go           the ConfigMaps of the record: how they are read, trusted and released
//	confirm.go          what is read again from the API server before an action
//	apply.go            how a dependent is created, changed and deleted
//	report.go           how the status and Events are written
//	retries.go          when a failed write is retried
//	throttle.go         how often record and status are written
//	memory.go           what is kept in memory only: since when pods are missing, which work never began
//	clock.go            the time, as the API server has it
//	resources.go        spec and plan → desired dependents
//	affinity.go         nodes ↔ the affinity of a DaemonSet
//	outcome.go          observed state → which nodes are cleaned up, how much time is left, and how the cleanup ended
//	status.go           observed state → conditions
//	end.go              record → how the work ends
//	state.go            the observed state of one reconciliation, where work may have begun, and when the next reconciliation is due
//	pods.go             what the status of the pods means
//	nodes.go            which nodes are eligible
//	conditions.go       how a condition is set
//	errors.go           the classes of errors; which of them are retried is decided next to Reconcile
//	messages.go         how texts are shortened and normalized
//
// Package internal/plan decides where each worker is placed, and package internal/record defines the text of the record.
package controller

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// fieldOwner is the field manager of this controller.
const fieldOwner = "goop-controller"

// GoopReconciler spreads the work of Goops over nodes, and reports what it observes.
type GoopReconciler struct {
	client.Client
	// apiReader reads from the API server instead of the cache.
	apiReader client.Reader
	recorder  events.EventRecorder
	clock     clock.PassiveClock

	images Images
	// allowHostAccess permits what Goops request in spec.host.
	allowHostAccess bool

	throttle throttle
	memory   memory
	retries  *retries
	// recordRetries are the retries of writes to the record, and endRetries those of writes that end work. Neither waits
	// for the retry of another failed write: otherwise work that has ended could run again.
	recordRetries, endRetries *retries
}

// NewGoopReconciler returns a reconciler that reads and writes through c. It uses apiReader to bypass the cache.
// allowHostAccess permits what Goops request in spec.host.
func NewGoopReconciler(c client.Client, apiReader client.Reader, recorder events.EventRecorder, clock clock.PassiveClock, images Images, allowHostAccess bool) *GoopReconciler {
	ownRetries := func() *retries { return newRetries(clock, newRateLimiter(), retryable) }
	return &GoopReconciler{
		Client: gatedClient{c}, apiReader: apiReader, recorder: recorder, clock: clock, images: images, allowHostAccess: allowHostAccess,
		retries: ownRetries(), recordRetries: ownRetries(), endRetries: ownRetries(),
	}
}

// The verb get is for reads that bypass the cache. Goops are patched only to change their finalizers. The permission for
// goops/finalizers is needed to set blockOwnerDeletion in an owner reference: the admission plugin
// OwnerReferencesPermissionEnforcement checks it.
//
// +kubebuilder:rbac:groups=goop.example.com,resources=goops,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=goop.example.com,resources=goops/status,verbs=patch
// +kubebuilder:rbac:groups=goop.example.com,resources=goops/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=daemonsets,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=list;watch;create;update;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile compares the actual state of one Goop with its spec and corrects the first difference. The write itself
// triggers the next reconciliation. If there is no difference, Reconcile reports the status. It is level-based: its
// result does not depend on what triggered it, and it may be called at any time and any number of times.
func (r *GoopReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	// 1. Fetch.
	var goop v1alpha1.Goop
	err := r.Get(ctx, req.NamespacedName, &goop)
	if apierrors.IsNotFound(err) {
		r.throttle.forget(req.NamespacedName)
		r.memory.forget(req.NamespacedName)
		for _, retries := range []*retries{r.retries, r.recordRetries, r.endRetries} {
			retries.forget(req)
		}
		return ctrl.Result{}, r.endAbandoned(ctx, req.NamespacedName)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	// Without our finalizer there is nothing to clean up.
	if !goop.DeletionTimestamp.IsZero() && !hasFinalizer(&goop) {
		return r.reconcileDelete(ctx, req, &goop)
	}

	// 2. Observe. This comes before the other steps because both the plan and the steps of a deletion depend on pods, nodes
	// and record.
	observed, err := r.observe(ctx, &goop)

	// 3. Finalize if the Goop is being deleted, else ensure the dependents. Before that, release the records of earlier
	// Goops of the same name, because their ConfigMaps have the names that this Goop needs.
	changed := false
	actCtx, cancel := untilReport(ctx)
	defer cancel()
	if err == nil {
		err = r.retries.try(actCtx, req, &goop, func(ctx context.Context) (err error) {
			earlierErr := errors.Join(r.releaseAbandoned(ctx, &goop, observed.found), r.endOrphansOfOthers(ctx, observed.key(), observed.pods))
			if goop.DeletionTimestamp.IsZero() {
				changed, err = r.ensureDependents(ctx, observed)
			} else {
				changed, err = r.finalize(ctx, observed)
			}
			return errors.Join(earlierErr, err)
		})
	}
	if err = r.retries.reportable(req, observed.now, err); (changed && err == nil) || isStale(err) {
		return ctrl.Result{}, err
	}
	if errors.Is(err, errNamespaceTerminating) {
		return ctrl.Result{}, nil
	}

	// 4. Report, failures included.
	observed.failure = failureOf(err)
	if reportErr := r.report(ctx, observed); reportErr != nil {
		announceUnreported(r.recorder, &goop, reportErr)
		return ctrl.Result{}, errors.Join(err, reportErr)
	}

	// 5. Requeue for what no event will trigger.
	return requeue(observed.requeue, retryable(err))
}

// reconcileDelete ends the work of a Goop that is being deleted and that a finalizer of another controller keeps, and reports
// that. The garbage collector deletes the dependents only after the Goop. Until then the DaemonSet controller would
// create pods that are evicted again. Foreground deletion and orphaning do not have this problem: there the garbage
// collector acts before the Goop is removed.
func (r *GoopReconciler) reconcileDelete(ctx context.Context, req ctrl.Request, goop *v1alpha1.Goop) (ctrl.Result, error) {
	if controllerutil.ContainsFinalizer(goop, metav1.FinalizerDeleteDependents) || controllerutil.ContainsFinalizer(goop, metav1.FinalizerOrphanDependents) {
		return ctrl.Result{}, nil
	}
	observed, err := r.observe(ctx, goop)
	if err == nil {
		err = r.retries.try(ctx, req, goop, func(ctx context.Context) error { return r.deleteAll(ctx, observed) })
	}
	if isStale(err) {
		return ctrl.Result{}, err
	}
	observed.failure = failureOf(err)
	if !goop.Ended() {
		err = errors.Join(err, r.report(ctx, observed))
	}
	return requeue(observed.requeue, retryable(err))
}

// endAbandoned ends what is left of a Goop that no longer exists: its record, and workers that were orphaned before.
func (r *GoopReconciler) endAbandoned(ctx context.Context, goop types.NamespacedName) error {
	pods, err := r.podsOf(ctx, goop)
	if err != nil {
		return err
	}
	found, err := r.shardsOf(ctx, goop)
	if err != nil {
		return err
	}
	none := &v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Namespace: goop.Namespace, Name: goop.Name}}
	return errors.Join(r.releaseAbandoned(ctx, none, found), r.endOrphansOfOthers(ctx, goop, pods))
}

// deleteAll deletes the DaemonSets of the work and of the cleanup.
func (r *GoopReconciler) deleteAll(ctx context.Context, observed *observation) error {
	all := slices.Collect(maps.Values(observed.rounds))
	if observed.cleanup != nil {
		all = append(all, observed.cleanup)
	}
	for _, daemonSet := range all {
		if isBeingDeleted(daemonSet) || !metav1.IsControlledBy(daemonSet, observed.goop) {
			continue
		}
		if err := deleteDependent(ctx, r.Client, daemonSet); err != nil {
			return err
		}
	}
	return nil
}

// ensureDependents takes one step after another until one has changed something, because each step depends on the steps
// before it. After an error in step 1 or 2, step 4 starts no work, but may end some. Then the error is returned.
func (r *GoopReconciler) ensureDependents(ctx context.Context, observed *observation) (bool, error) {
	// 1. A Goop with a cleanupCmd gets its finalizer before there is anything else.
	changed, finalizerErr := r.ensureFinalizer(ctx, observed)
	if changed || isStale(finalizerErr) || (finalizerErr != nil && len(observed.uids)+len(observed.rounds) == 0) {
		return changed, finalizerErr
	}
	// 2. The results of workers are recorded, and the end of the work is written to the status.
	done, recordErr := r.recordAll(ctx, observed)
	if done {
		return true, recordErr
	}
	// 3. When the TTL has expired, the dependents are deleted.
	if changed, err := r.deleteAfterTTL(ctx, observed); changed || err != nil {
		return changed, err
	}
	// 4. The DaemonSets are changed to match the plan.
	if changed, err := r.ensureRounds(ctx, observed, finalizerErr == nil && recordErr == nil); changed || err != nil {
		return changed, err
	}
	if err := errors.Join(finalizerErr, recordErr); err != nil {
		return false, err
	}
	// 5. For a Goop with a cleanupCmd, it is recorded that no more work will begin.
	return r.recordEnd(ctx, observed)
}

// report writes the status if it changed: at once for the first time, and then no more often than the throttle allows.
func (r *GoopReconciler) report(ctx context.Context, observed *observation) error {
	r.checkPods(observed)
	status := desiredStatus(observed)
	if apiequality.Semantic.DeepEqual(status, observed.goop.Status) {
		ctrl.LoggerFrom(ctx).V(1).Info("Nothing to change", "running", status.Running)
		return nil
	}
	first := len(observed.goop.Status.Conditions) == 0
	if wait := r.throttle.wait(observed.key(), writesStatus, observed.now); wait > 0 && !first {
		observed.requeueAfter(wait)
		return nil
	}
	if becomesSuspended(observed.goop.Status, status) {
		if err := r.confirmPods(ctx, observed); err != nil {
			return err
		}
	}
	if err := r.reportStatus(ctx, observed, status); err != nil {
		return err
	}
	if !first {
		r.throttle.wrote(observed.key(), writesStatus, observed.now)
	}
	return nil
}

// podsTimeout is how long pods may be missing before that is reported. The DaemonSet controller creates pods within
// moments; if it fails, it retries with a growing back-off.
const podsTimeout = 15 * time.Second

// checkPods notes since when pods are missing for work that has to be done. No event is sent for a pod that is not
// created.
func (r *GoopReconciler) checkPods(observed *observation) {
	missing := lacksPods(observed) || lacksCleanupPods(observed)
	waited := r.memory.podsMissing(observed.key(), missing, observed.now)
	observed.noPods = waited >= podsTimeout
	if missing {
		observed.requeueAfter(podsTimeout - waited)
	}
}

// retryable returns the part of an error that is retried. The rest waits for an event: the deletion of an object with the
// same name, or an edit of the record. Host access changes only with a restart of the operator.
func retryable(err error) error {
	for _, reason := range []string{v1alpha1.ReasonNameConflict, v1alpha1.ReasonHostAccessNotAllowed, v1alpha1.ReasonRecordUnreadable} {
		err = without(err, reason)
	}
	return err
}
