// Package controller runs a command on a cluster of Flux brokers. The Flux controller creates one FluxSetup for each
// Flux. The FluxSetup controller creates the Secret, ConfigMap, Service and Job that the brokers need.
//
// The files are listed in reading order. A function calls only functions of its own file and of later ones. The prefix
// flux_ marks files of the Flux controller, and fluxsetup_ those of the FluxSetup controller. Both controllers use the
// other files:
//
//	flux_controller.go         Reconcile of a Flux, step by step
//	fluxsetup_controller.go    Reconcile of a FluxSetup, step by step
//	watches.go                 what triggers a reconciliation, and what the cache holds
//	fluxsetup_finalize.go      what is deleted when another client has deleted the FluxSetup
//	fluxsetup_launch.go        how an attempt is started, once
//	fluxsetup_teardown.go      how the dependents of a suspended FluxSetup are deleted
//	fluxsetup_dependents.go    how Service, ConfigMap and Secret are created and kept as desired
//	fluxsetup_jobs.go          which Jobs and pods exist, how a Job is changed, and how Jobs of other attempts are deleted
//	confirm.go                 what is read again from the API server before an action
//	apply.go                   how a dependent is written
//	report.go                  how the status and Events are written
//	retries.go                 when a failed write is retried
//	throttle.go                how often readiness alone is written
//	skew.go                    how differing clocks of replicas are handled
//	flux_plan.go               Flux and FluxSetup → who owns the FluxSetup, and what to do: restarts and their back-off, the end
//	flux_resources.go          spec of a Flux → desired FluxSetup, and which resourceVersion it may overwrite
//	flux_escape.go             how a FluxSetup is encoded for server-side apply
//	fluxsetup_resources.go     spec of a FluxSetup → desired dependents
//	flux_status.go             what was observed → conditions of a Flux
//	flux_end.go                status of the FluxSetup → how the Flux ends, if no restart is left
//	fluxsetup_status.go        what was observed → conditions of a FluxSetup
//	fluxsetup_end.go           Job and pods → how an attempt ended
//	fluxsetup_terminations.go  what was observed of pods that may no longer exist
//	fluxsetup_pod_end.go       how a pod ended
//	fluxsetup_pods.go          what the status of a pod means
//	attempt.go                 state of the current attempt in FluxSetup and Job, and what makes a Job run it once
//	conditions.go              how a condition is set
//	errors.go                  the classes of errors; which of them are retried is decided next to Reconcile
//	messages.go                how texts are shortened and normalized
package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// fluxFieldOwner is the name under which the API server records the fields that the Flux controller owns.
const fluxFieldOwner = "flux-controller"

// FluxReconciler creates a FluxSetup for each Flux, starts the next attempt after a failure, and reports what it
// observes.
type FluxReconciler struct {
	client.Client
	// apiReader reads from the API server instead of the cache.
	apiReader client.Reader
	recorder  events.EventRecorder
	clock     clock.PassiveClock
	// BackOff is DefaultBackOff, unless it is set before the first call of Reconcile.
	BackOff BackOff

	throttle throttle
	skews    skews
	retries  *retries
}

// NewFluxReconciler returns a reconciler that reads and writes through c. It uses apiReader to bypass the cache.
func NewFluxReconciler(c client.Client, apiReader client.Reader, recorder events.EventRecorder, clock clock.PassiveClock) *FluxReconciler {
	return &FluxReconciler{Client: gatedClient{c}, apiReader: apiReader, recorder: recorder, clock: clock, BackOff: DefaultBackOff, retries: newRetries(clock, newRateLimiter(), fluxRetryable)}
}

// The verb get is for reads that bypass the cache. Server-side apply needs patch. The permission for finalizers is
// needed to set blockOwnerDeletion in an owner reference: the admission plugin OwnerReferencesPermissionEnforcement
// checks it. That plugin also requires the permission to delete a FluxSetup whose owner references are changed.
//
// +kubebuilder:rbac:groups=flux-framework.org,resources=fluxes,verbs=get;list;watch
// +kubebuilder:rbac:groups=flux-framework.org,resources=fluxes/status,verbs=patch
// +kubebuilder:rbac:groups=flux-framework.org,resources=fluxes/finalizers,verbs=update
// +kubebuilder:rbac:groups=flux-framework.org,resources=fluxsetups,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile compares the FluxSetup of one Flux with its desired state and corrects the differences. It is level-based:
// its result does not depend on what triggered it, and it may be called at any time and any number of times.
func (r *FluxReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	// 1. Fetch.
	var flux v1alpha1.Flux
	err := r.Get(ctx, req.NamespacedName, &flux)
	if apierrors.IsNotFound(err) {
		r.throttle.forget(req.NamespacedName)
		r.skews.forget(req.NamespacedName)
		r.retries.forget(req)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}

	// 2. Finalize. The garbage collector deletes the dependents of a Flux after the Flux itself.
	if !flux.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.reconcileDelete(ctx, req, &flux)
	}

	// 3. Ensure the one dependent, the FluxSetup, and 4. observe its status. Failures are reported too, unless the cache
	//    was stale: then the queue retries.
	var observed fluxObservation
	actCtx, cancel := untilReport(ctx)
	defer cancel()
	err = r.retries.try(actCtx, req, &flux, func(ctx context.Context) error {
		return r.ensureSetup(ctx, &flux, &observed)
	})
	if err = r.retries.reportable(req, r.clock.Now(), err); isStale(err) {
		return ctrl.Result{}, err
	}
	if errors.Is(err, errNamespaceTerminating) {
		return ctrl.Result{}, nil
	}
	observed.failure = failureOf(err)

	// 5. Report.
	wait, reportErr := r.report(ctx, &flux, observed)
	if reportErr != nil {
		announceUnreported(r.recorder, &flux, reportErr)
		return ctrl.Result{}, errors.Join(err, reportErr)
	}

	// 6. Requeue for what no event will trigger.
	return requeue(soonest(wait, observed.requeueAfter), fluxRetryable(err))
}

// reconcileDelete ends the work of a Flux that is being deleted and that a finalizer of another controller keeps. The garbage
// collector deletes the FluxSetup only after the Flux, so until then the command would continue to run, and no failure
// would be handled. Foreground deletion and orphaning do not have this problem: the garbage collector acts before the
// Flux is removed.
func (r *FluxReconciler) reconcileDelete(ctx context.Context, req ctrl.Request, flux *v1alpha1.Flux) error {
	if controllerutil.ContainsFinalizer(flux, metav1.FinalizerDeleteDependents) || controllerutil.ContainsFinalizer(flux, metav1.FinalizerOrphanDependents) {
		return nil
	}
	orphaned := false
	err := r.retries.try(ctx, req, flux, func(ctx context.Context) (err error) {
		orphaned, err = r.deleteSetup(ctx, flux)
		return err
	})
	// There is nothing to report if the Flux never had a FluxSetup, or if its FluxSetup is an orphan.
	if isStale(err) || (err == nil && flux.Status.SetupRef == nil) || orphaned || ended(flux) {
		return err
	}
	before := flux.DeepCopy()
	flux.Status = terminatingStatus(flux, failureOf(err), r.clock.Now())
	if apiequality.Semantic.DeepEqual(flux.Status, before.Status) {
		return err
	}
	if reportErr := writeStatus(ctx, r.Client, before, flux, fluxFieldOwner); reportErr != nil {
		return errors.Join(err, reportErr)
	}
	announce(ctx, r.recorder, flux, transitions(before.Status, flux.Status))
	return err
}

// deleteSetup deletes the FluxSetup of a Flux, if the Flux is still its controller. The garbage collector deletes the
// dependents of the FluxSetup. orphaned is true if the FluxSetup exists without an owner because the garbage collector
// has orphaned it.
func (r *FluxReconciler) deleteSetup(ctx context.Context, flux *v1alpha1.Flux) (orphaned bool, err error) {
	setup, err := readSetup(ctx, r.Client, flux)
	if err != nil || setup == nil {
		return false, err
	}
	if !metav1.IsControlledBy(setup, flux) {
		return ownershipOf(flux, setup) == setupOwned, nil
	}
	if !setup.DeletionTimestamp.IsZero() {
		return false, nil
	}
	err = r.Delete(ctx, setup, client.PropagationPolicy(metav1.DeletePropagationBackground),
		client.Preconditions{UID: &setup.UID, ResourceVersion: &setup.ResourceVersion})
	if err == nil || isGone(err) {
		return false, nil
	}
	return false, classify("deleting FluxSetup "+setup.Name, err)
}

// ensureSetup writes the FluxSetup if the plan requires it. It updates flux and observed to the resulting state.
func (r *FluxReconciler) ensureSetup(ctx context.Context, flux *v1alpha1.Flux, observed *fluxObservation) error {
	observed.now = r.clock.Now()
	setup, err := readSetup(ctx, r.Client, flux)
	if err != nil {
		observed.unread = true
		return err
	}
	next := r.plan(flux, setup, observed)
	if !next.confirmed(flux) {
		if setup, err = r.readAgain(ctx, flux); err != nil {
			observed.unread = true
			return err
		}
		next = r.plan(flux, setup, observed)
	}
	observed.plan = next
	if next.ownership == setupOwned {
		observed.setup = setup
	}
	if next.desired == nil {
		return nil
	}
	applied, err := r.writeSetup(ctx, next)
	if applied != nil {
		observed.setup = applied
	}
	return err
}

// plan decides what to do. The time that it uses is never before the launch of the attempt.
func (r *FluxReconciler) plan(flux *v1alpha1.Flux, setup *v1alpha1.FluxSetup, observed *fluxObservation) plan {
	observed.now = r.skews.now(client.ObjectKeyFromObject(flux), r.clock.Now(), launchTime(setup))
	return planFor(flux, setup, observed.now, r.BackOff)
}

// writeSetup writes the FluxSetup of a plan, and returns the API server's response. The first apply can only create: if
// a replica that is no longer the leader sends it late, it does not change an existing FluxSetup. Later applies force
// ownership, so that a writer that changed one of our fields loses it. Their uid and resourceVersion prevent a write to
// any other object or version.
func (r *FluxReconciler) writeSetup(ctx context.Context, next plan) (*v1alpha1.FluxSetup, error) {
	dependent, configuration := "FluxSetup "+next.desired.Name, applyConfigurationOf(next.desired)
	var stored map[string]any
	var err error
	if next.ownership == setupAbsent {
		stored, err = createByApply(ctx, r.Client, fluxFieldOwner, dependent, configuration)
	} else if stored, err = apply(ctx, r.Client, configuration, client.FieldOwner(fluxFieldOwner), client.ForceOwnership); err != nil {
		err = classify("applying "+dependent, err)
	}
	if err != nil {
		return nil, err
	}
	var applied v1alpha1.FluxSetup
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored, &applied); err != nil {
		return nil, fmt.Errorf("reading the response to an apply: %w", err)
	}
	ours := applied.Spec
	ours.Launch = nil
	if !apiequality.Semantic.DeepEqual(ours, next.desired.Spec) {
		return &applied, changedByAdmission("spec", dependent)
	}
	return &applied, nil
}

// report writes the status if it changed, and then announces the transitions. If only readiness changed, the write may
// have to wait: then report returns for how long.
func (r *FluxReconciler) report(ctx context.Context, flux *v1alpha1.Flux, observed fluxObservation) (time.Duration, error) {
	status := fluxStatus(flux, observed)
	if apiequality.Semantic.DeepEqual(status, flux.Status) {
		ctrl.LoggerFrom(ctx).V(1).Info("Nothing to change", "readyRanks", status.ReadyRanks)
		return 0, nil
	}
	key := client.ObjectKeyFromObject(flux)
	if wait := r.throttle.wait(key, observed.now); wait > 0 && onlyReadiness(status, flux.Status) {
		return wait, nil
	}
	before := flux.DeepCopy()
	flux.Status = status
	if err := writeStatus(ctx, r.Client, before, flux, fluxFieldOwner); err != nil {
		return 0, err
	}
	r.throttle.wrote(key, observed.now)
	announce(ctx, r.recorder, flux, transitions(before.Status, status))
	return 0, nil
}

// fluxRetryable returns the part of an error that is retried. A name conflict is not: the deletion of the other object
// triggers a reconciliation, as does the write of the end of the Flux to the status.
func fluxRetryable(err error) error {
	err = without(err, v1alpha1.ReasonNameConflict)
	return err
}
