// Package controller runs a command on a cluster of Flux brokers. The Flux controller makes one FluxSetup for each Flux,
// and the FluxSetup controller the Secret, ConfigMap, Service and Job that the brokers need.
//
// Its files in the order of reading. A function calls functions of its own file and of later ones only:
//
//	flux_controller.go       Reconcile of a Flux, step by step
//	fluxsetup_controller.go  Reconcile of a FluxSetup, step by step
//	watches.go               what triggers a reconciliation, and what the cache holds
//	launch.go                how an attempt is started, once
//	teardown.go              how what exists of a FluxSetup is deleted
//	fluxsetup_jobs.go        which Jobs and pods there are, and how those of other attempts are deleted
//	fluxsetup_dependents.go  how Service, ConfigMap and Secret are kept
//	apply.go                 how a dependent is written
//	report.go                how the status and Events are written
//	pace.go                  how often readiness alone is written
//	flux_plan.go             Flux and FluxSetup → what is to be done
//	flux_resources.go        spec of a Flux → desired FluxSetup
//	flux_escape.go           how a FluxSetup is encoded
//	fluxsetup_resources.go   spec of a FluxSetup → desired dependents
//	flux_status.go           what was observed → conditions of a Flux
//	flux_end.go              what the FluxSetup says → the end of a Flux
//	fluxsetup_status.go      what was observed → conditions of a FluxSetup
//	fluxsetup_end.go         Job and pods → how an attempt ended
//	terminations.go          what was observed of pods that may be gone
//	pod_end.go               how a pod ended
//	pods.go                  what pods say of themselves
//	attempt.go               what a FluxSetup and a Job say of the present attempt
//	conditions.go            how a condition is set
//	errors.go                the classes of errors
//	messages.go              texts of conditions and Events
package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// fluxFieldOwner is the name under which the API server records the fields that the Flux controller owns.
const fluxFieldOwner = "flux-controller"

// FluxReconciler makes a FluxSetup for each Flux, starts the next attempt after a failure, and reports what it observes.
type FluxReconciler struct {
	client.Client
	// apiReader reads past the cache.
	apiReader client.Reader
	recorder  events.EventRecorder
	clock     clock.PassiveClock

	pace pace
}

// NewFluxReconciler returns a reconciler that reads and writes through c, and through apiReader past the cache.
func NewFluxReconciler(c client.Client, apiReader client.Reader, recorder events.EventRecorder, clock clock.PassiveClock) *FluxReconciler {
	return &FluxReconciler{Client: c, apiReader: apiReader, recorder: recorder, clock: clock}
}

// Get is for what is read past the cache. Server-side apply is patch, and create where the object is not there
// yet. The finalizers are for blockOwnerDeletion in an owner reference, which the admission plugin
// OwnerReferencesPermissionEnforcement allows to no one else.
//
// +kubebuilder:rbac:groups=flux-framework.org,resources=fluxes,verbs=get;list;watch
// +kubebuilder:rbac:groups=flux-framework.org,resources=fluxes/status,verbs=patch
// +kubebuilder:rbac:groups=flux-framework.org,resources=fluxes/finalizers,verbs=update
// +kubebuilder:rbac:groups=flux-framework.org,resources=fluxsetups,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile compares the FluxSetup of one Flux with what it should be and corrects what differs. It does the same
// whatever triggered it, and it may be called at any time and any number of times.
func (r *FluxReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	// 1. Fetch.
	var flux v1alpha1.Flux
	if err := r.Get(ctx, req.NamespacedName, &flux); err != nil {
		r.pace.forget(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}

	// 2. Finalize. There is nothing to do: the garbage collector deletes what a deleted Flux owns.
	if !flux.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}

	// 3. Ensure the one dependent, the FluxSetup, and 4. observe what it says. What fails is reported too, unless what
	// was read is stale: then the queue tries again.
	var observed fluxObservation
	err := r.ensureSetup(ctx, &flux, &observed)
	if isStale(err) {
		return ctrl.Result{}, err
	}
	observed.failure = failureOf(err)

	// 5. Report.
	wait, reportErr := r.report(ctx, &flux, observed)
	if reportErr != nil {
		return ctrl.Result{}, errors.Join(err, reportErr)
	}

	// 6. Requeue for what no event will announce. The deletion of the object that has our name is an event, and so is
	// the end of the Flux: it is in its own status.
	if _, err = without(err, v1alpha1.ReasonNameConflict); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: soonest(wait, observed.requeueAfter)}, nil
}

// ensureSetup applies the FluxSetup if the plan says so. It leaves in flux and in observed what there is after it.
func (r *FluxReconciler) ensureSetup(ctx context.Context, flux *v1alpha1.Flux, observed *fluxObservation) error {
	observed.now = r.clock.Now()
	setup, err := readSetup(ctx, r.Client, flux)
	if err != nil {
		observed.unread = true
		return err
	}
	next := planFor(flux, setup, observed.now)
	if !next.confirmed(flux) {
		if setup, err = r.readAgain(ctx, flux); err != nil {
			observed.unread = true
			return err
		}
		next = planFor(flux, setup, observed.now)
	}
	observed.plan = next
	if next.ownership == setupOwned {
		observed.setup = setup
	}
	if next.apply == nil {
		return nil
	}
	applied, err := r.applySetup(ctx, next)
	if applied != nil {
		observed.setup = applied
	}
	return err
}

// readSetup reads the FluxSetup of a Flux's name, whether the Flux owns it or not; nil if there is none.
func readSetup(ctx context.Context, reader client.Reader, flux *v1alpha1.Flux) (*v1alpha1.FluxSetup, error) {
	var setup v1alpha1.FluxSetup
	err := reader.Get(ctx, client.ObjectKeyFromObject(flux), &setup)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading FluxSetup %s: %w", flux.Name, err)
	}
	return &setup, nil
}

// readAgain reads both past the cache, which may be stale. It leaves in flux what it has read, and returns the FluxSetup
// of its name.
func (r *FluxReconciler) readAgain(ctx context.Context, flux *v1alpha1.Flux) (*v1alpha1.FluxSetup, error) {
	var confirmed v1alpha1.Flux
	err := r.apiReader.Get(ctx, client.ObjectKeyFromObject(flux), &confirmed)
	if apierrors.IsNotFound(err) || (err == nil && !confirmed.DeletionTimestamp.IsZero()) {
		return nil, fmt.Errorf("reading Flux %s, which is deleted: %w", flux.Name, errStale)
	}
	if err != nil {
		return nil, fmt.Errorf("reading Flux %s: %w", flux.Name, err)
	}
	*flux = confirmed
	return readSetup(ctx, r.apiReader, flux)
}

// applySetup writes the FluxSetup of a plan, and returns the API server's response. One that is ours is written by
// force: a writer that changed a field of ours loses it. One that does not exist yet is not: if one that is not ours
// has been created since, the API server responds with a conflict of field managers, and nothing of it is adopted.
func (r *FluxReconciler) applySetup(ctx context.Context, next plan) (*v1alpha1.FluxSetup, error) {
	options := []client.ApplyOption{client.FieldOwner(fluxFieldOwner)}
	if next.ownership == setupOwned {
		options = append(options, client.ForceOwnership)
	}
	configuration := configurationOf(next.apply)
	err := r.Apply(ctx, configuration, options...)
	switch {
	case apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict):
		return nil, &rejectedError{reason: v1alpha1.ReasonNameConflict, message: nameConflictMessage(next.apply.Name)}
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// The garbage collector is at work, and the Flux itself is deleted next.
		return nil, nil
	case err != nil:
		return nil, classify("applying FluxSetup "+next.apply.Name, err)
	}
	return configuration.response(), nil
}

// report writes the status if it changed, and then announces what is new in it. If only readiness changed, it may have
// to wait: then it returns for how long.
func (r *FluxReconciler) report(ctx context.Context, flux *v1alpha1.Flux, observed fluxObservation) (time.Duration, error) {
	status := fluxStatus(flux, observed)
	if apiequality.Semantic.DeepEqual(status, flux.Status) {
		ctrl.LoggerFrom(ctx).V(1).Info("Nothing to change", "readyRanks", status.ReadyRanks)
		return 0, nil
	}
	key := client.ObjectKeyFromObject(flux)
	if wait := r.pace.wait(key, observed.now); wait > 0 && onlyReadiness(status, flux.Status) {
		return wait, nil
	}
	before := flux.DeepCopy()
	flux.Status = status
	if err := writeStatus(ctx, r.Client, before, flux, fluxFieldOwner); err != nil {
		return 0, err
	}
	r.pace.wrote(key, observed.now)
	announce(ctx, r.recorder, flux, fluxTransitions(before.Status, status))
	return 0, nil
}
