package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// FluxReconciler makes a FluxSetup for each Flux, begins it anew after a failure, and reports what it says.
type FluxReconciler struct {
	client.Client
	// APIReader reads past the cache.
	APIReader client.Reader
	Recorder  events.EventRecorder
	Clock     clock.PassiveClock

	pace pace
}

// NewFluxReconciler returns a reconciler that reads and writes through c, and through reader past the cache.
func NewFluxReconciler(c client.Client, reader client.Reader, recorder events.EventRecorder) *FluxReconciler {
	return &FluxReconciler{Client: c, APIReader: reader, Recorder: recorder, Clock: clock.RealClock{}}
}

// SetupWithManager says what wakes the reconciler. A FluxSetup that is not ours wakes the Flux of its name when
// it goes.
func (r *FluxReconciler) SetupWithManager(mgr ctrl.Manager, concurrency int) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Flux{}).
		Owns(&v1alpha1.FluxSetup{}).
		Watches(&v1alpha1.FluxSetup{}, handler.Funcs{DeleteFunc: enqueueNamesake}).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrency,
			// No wait is longer than a user's patience: the default is a quarter of an hour.
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, 30*time.Second),
		}).
		Complete(r)
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

// Reconcile makes one pass over one Flux: it does the same whatever woke it, and it may be called at any time
// and any number of times.
func (r *FluxReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	// 1. Look, and decide what is to be done. Deleted or on its way: the garbage collector removes what it owns.
	flux, setup, err := look(ctx, r.Client, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if flux == nil {
		r.pace.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	next := planFor(flux, setup, r.Clock.Now())

	// 2. The cache may be behind. Whatever begins, ends or takes away an attempt is decided anew on what the
	// API server itself says, the end of the Flux included: what was done once is not done again.
	if next.apply != nil || (next.standing != standingOurs && !ended(flux)) {
		if flux, setup, err = look(ctx, r.APIReader, req.NamespacedName); err != nil || flux == nil {
			return ctrl.Result{}, err
		}
		next = planFor(flux, setup, r.Clock.Now())
	}

	// 3. Act, and report. A refusal is reported; any other error (a time-out, a conflict, no connection) ends
	// the pass, and the queue tries again.
	seen, err := r.act(ctx, flux, setup, next)
	if err != nil {
		return ctrl.Result{}, err
	}
	wait, err := r.report(ctx, flux, seen)
	if err != nil {
		return ctrl.Result{}, err
	}

	// 4. Come back for what no event will announce. The end of the Flux is announced: by its own status.
	if seen.missing != nil && seen.missing.retry != nil {
		return ctrl.Result{}, seen.missing.retry
	}
	return ctrl.Result{RequeueAfter: max(wait, next.wake)}, nil
}

// look reads a Flux and the FluxSetup of its name, whoever's that is; nil for what is not there. A Flux that is
// on its way out is not there.
func look(ctx context.Context, reader client.Reader, key types.NamespacedName) (*v1alpha1.Flux, *v1alpha1.FluxSetup, error) {
	var flux v1alpha1.Flux
	if err := reader.Get(ctx, key, &flux); err != nil {
		return nil, nil, client.IgnoreNotFound(err)
	}
	if !flux.DeletionTimestamp.IsZero() {
		return nil, nil, nil
	}
	var setup v1alpha1.FluxSetup
	err := reader.Get(ctx, key, &setup)
	if apierrors.IsNotFound(err) {
		return &flux, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading FluxSetup %s: %w", key.Name, err)
	}
	return &flux, &setup, nil
}

// act applies the FluxSetup if the plan says so, and returns what there is after it.
func (r *FluxReconciler) act(ctx context.Context, flux *v1alpha1.Flux, setup *v1alpha1.FluxSetup, next plan) (fluxFacts, error) {
	seen := fluxFacts{missing: next.missing, end: next.end}
	if next.standing == standingOurs {
		seen.setup = setup
	}
	if next.apply == nil {
		return seen, nil
	}
	applied, err := r.applySetup(ctx, next)
	switch {
	case err == nil:
		seen.setup = applied
	case next.standing == standingAbsent && apierrors.IsConflict(err):
		seen.missing = nameConflictOf(flux)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// The Flux itself goes next.
		seen.missing = &obstacle{reason: v1alpha1.ReasonStarting, message: "the namespace is about to go"}
	case isRefusal(err, next.standing):
		seen.missing = &obstacle{reason: v1alpha1.ReasonApplyFailed, message: err.Error(), retry: err}
	default:
		return seen, fmt.Errorf("applying FluxSetup %s: %w", flux.Name, err)
	}
	return seen, nil
}

// isRefusal tells what the API server will not have from what may be gone with the next try. Of a FluxSetup that is
// there only what its Flux allows is changed, so it is Invalid only if it was not what it was taken for: another one
// has its name now, or another replica of the operator was faster.
func isRefusal(err error, standing standing) bool {
	return apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) ||
		(apierrors.IsInvalid(err) && standing == standingAbsent)
}

// applySetup writes the FluxSetup of a plan, and returns the API server's answer. One that is ours is written
// by force: whoever changed a field that is ours loses it. One that is not there yet is not: if a foreign one
// has come into being since, the API server answers with a conflict, and nothing of it is seized.
func (r *FluxReconciler) applySetup(ctx context.Context, next plan) (*v1alpha1.FluxSetup, error) {
	options := []client.ApplyOption{client.FieldOwner(fluxFieldOwner)}
	if next.standing == standingOurs {
		options = append(options, client.ForceOwnership)
	}
	configuration := configurationOf(next.apply)
	if err := r.Apply(ctx, configuration, options...); err != nil {
		return nil, err
	}
	return configuration.answer(), nil
}

// report writes the status if it changed, and then Events for what is new in it. If only readiness changed, it
// may have to wait: then it returns for how long.
func (r *FluxReconciler) report(ctx context.Context, flux *v1alpha1.Flux, seen fluxFacts) (time.Duration, error) {
	now := r.Clock.Now()
	status := fluxStatus(flux, seen, metav1.NewTime(now))
	if apiequality.Semantic.DeepEqual(status, flux.Status) {
		ctrl.LoggerFrom(ctx).V(1).Info("Nothing to change", "ready", status.Ready)
		return 0, nil
	}
	key := client.ObjectKeyFromObject(flux)
	if wait := r.pace.wait(key, now); wait > 0 && onlyReadiness(status, flux.Status) {
		return wait, nil
	}
	// The lock is there because a merge patch replaces the whole list of conditions.
	before := flux.DeepCopy()
	flux.Status = status
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Status().Patch(ctx, flux, patch, client.FieldOwner(fluxFieldOwner)); err != nil {
		return 0, fmt.Errorf("writing status of Flux %s: %w", flux.Name, err)
	}
	r.pace.wrote(key, now)
	r.announce(ctx, flux, before)
	return 0, nil
}

func onlyReadiness(status, before v1alpha1.FluxStatus) bool {
	status.Ready = before.Ready
	return apiequality.Semantic.DeepEqual(status, before)
}

// announce tells of transitions: in the log, and to users in Events.
func (r *FluxReconciler) announce(ctx context.Context, flux, before *v1alpha1.Flux) {
	for _, one := range occurrences(before.Status, flux.Status) {
		ctrl.LoggerFrom(ctx).Info("Flux changed", "reason", one.reason, "message", one.message)
		r.Recorder.Eventf(flux, nil, one.kind, one.reason, "Reconcile", "%s", one.message)
	}
}
