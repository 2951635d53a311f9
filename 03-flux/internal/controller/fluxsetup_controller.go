package controller

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// setupFieldOwner is the name under which the API server records the fields that the FluxSetup controller owns.
const setupFieldOwner = "fluxsetup-controller"

// FluxSetupReconciler creates what the brokers of a Flux need, once for each attempt, and reports what it observes.
type FluxSetupReconciler struct {
	client.Client
	// apiReader reads past the cache.
	apiReader client.Reader
	clock     clock.PassiveClock
	// random is what certificates are made of.
	random io.Reader

	pace         pace
	terminations podTerminations
}

// NewFluxSetupReconciler returns a reconciler that reads and writes through c, and through apiReader past the cache.
func NewFluxSetupReconciler(c client.Client, apiReader client.Reader, clock clock.PassiveClock) *FluxSetupReconciler {
	return &FluxSetupReconciler{Client: c, apiReader: apiReader, clock: clock, random: rand.Reader}
}

// Get is for what is read past the cache. Server-side apply is patch, and create where the object is not there yet.
// Secrets can neither be listed nor watched, and pods not be changed. ConfigMaps and Secrets are deleted by the garbage
// collector, with the Job that owns them. The finalizers are for blockOwnerDeletion in an owner reference, which the
// admission plugin OwnerReferencesPermissionEnforcement allows to no one else.
//
// +kubebuilder:rbac:groups=flux-framework.org,resources=fluxes,verbs=get;list;watch
// +kubebuilder:rbac:groups=flux-framework.org,resources=fluxsetups,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=flux-framework.org,resources=fluxsetups/status,verbs=patch
// +kubebuilder:rbac:groups=flux-framework.org,resources=fluxsetups/finalizers,verbs=update
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=batch,resources=jobs/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=list;watch;create
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch

// Reconcile compares what exists for one FluxSetup with its spec and corrects what differs. It does the same whatever
// triggered it, and it may be called at any time and any number of times.
func (r *FluxSetupReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	// 1. Fetch, and 2. finalize: there is nothing to do for a FluxSetup that is deleted, or whose Flux is. The garbage
	// collector deletes what it owns.
	setup, flux, err := r.fetch(ctx, req.NamespacedName)
	if err != nil || setup == nil {
		return ctrl.Result{}, err
	}

	// 3. Ensure the dependents, and 4. observe the pods. What fails is reported too, unless what was read is stale: then
	// the queue tries again.
	observed := setupObservation{now: r.clock.Now(), notOwned: flux == nil}
	err = errors.Join(r.ensureDependents(ctx, setup, &observed), r.observePods(ctx, setup, &observed))
	if isStale(err) {
		return ctrl.Result{}, err
	}
	observed.failure = failureOf(err)

	// 5. Report. Once the end of an attempt is written, what still runs of it may go; what has ended by itself is kept.
	wait, reportErr := r.report(ctx, setup, observed)
	if reportErr != nil {
		return ctrl.Result{}, errors.Join(err, reportErr)
	}
	if over(setup) && observed.job != nil && verdictOf(observed.job) == nil {
		err = errors.Join(err, r.deleteJob(ctx, observed.job))
	}

	// 6. Requeue for what no event will announce. The deletion of the object that has our name is an event, and a Flux
	// that does not allow a launch never will.
	for _, reason := range []string{v1alpha1.ReasonNameConflict, v1alpha1.ReasonNotOwned, v1alpha1.ReasonFinished} {
		_, err = without(err, reason)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: wait}, nil
}

// fetch reads the FluxSetup, nil if there is nothing to be done for it, and the Flux that it belongs to, nil if there is
// none.
func (r *FluxSetupReconciler) fetch(ctx context.Context, key types.NamespacedName) (*v1alpha1.FluxSetup, *v1alpha1.Flux, error) {
	var setup v1alpha1.FluxSetup
	err := r.Get(ctx, key, &setup)
	if apierrors.IsNotFound(err) {
		r.pace.forget(key)
		r.terminations.forget(key)
	}
	if err != nil || !setup.DeletionTimestamp.IsZero() {
		return nil, nil, client.IgnoreNotFound(err)
	}
	flux, err := r.ownerOf(ctx, &setup)
	if err != nil || (flux != nil && !flux.DeletionTimestamp.IsZero()) {
		return nil, nil, err
	}
	return &setup, flux, nil
}

// ownerOf returns the Flux that the FluxSetup belongs to: the one of its name, if it is its controller. nil if
// there is no such Flux.
func (r *FluxSetupReconciler) ownerOf(ctx context.Context, setup *v1alpha1.FluxSetup) (*v1alpha1.Flux, error) {
	owner := metav1.GetControllerOf(setup)
	if owner == nil || owner.APIVersion != v1alpha1.GroupVersion.String() || owner.Kind != "Flux" || owner.Name != setup.Name {
		return nil, nil
	}
	// The cache may be behind in either direction.
	for _, reader := range []client.Reader{r.Client, r.apiReader} {
		var flux v1alpha1.Flux
		if err := reader.Get(ctx, client.ObjectKeyFromObject(setup), &flux); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading Flux %s: %w", setup.Name, err)
		}
		if flux.UID == owner.UID {
			return &flux, nil
		}
	}
	return nil, nil
}

// ensureDependents brings what exists in line with the spec, and leaves in observed what is in the way.
func (r *FluxSetupReconciler) ensureDependents(ctx context.Context, setup *v1alpha1.FluxSetup, observed *setupObservation) error {
	switch {
	case observed.notOwned:
		return nil
	case setup.Spec.Suspend:
		return r.tearDown(ctx, setup, observed)
	}
	jobs, err := r.readJobs(ctx, r.Client, setup)
	if err != nil {
		return err
	}
	observed.job = jobs.current
	switch {
	// 1. Nothing of an attempt that is over is created again.
	case over(setup):
		return r.deleteSuperseded(ctx, jobs)
	// 2. It was started. Only what the cluster has lost is corrected.
	case jobs.current != nil && recorded(setup) && started(jobs.current):
		return errors.Join(r.deleteSuperseded(ctx, jobs), r.maintain(ctx, setup, observed))
	// 3. It was not, as far as the cache has it.
	default:
		return r.launch(ctx, setup, observed)
	}
}

// observePods adds what is known of the pods to the observation.
func (r *FluxSetupReconciler) observePods(ctx context.Context, setup *v1alpha1.FluxSetup, observed *setupObservation) error {
	if observed.notOwned || !launched(setup) {
		return nil
	}
	observed.ends = r.terminations.of(client.ObjectKeyFromObject(setup), types.UID(setup.Spec.Launch.JobUID))
	if observed.job == nil {
		return nil
	}
	var err error
	if observed.pods, err = r.podsOf(ctx, setup, observed.job.UID); err != nil {
		return err
	}
	for i := range observed.pods {
		observed.ends.note(endOfPod(&observed.pods[i], false), false)
	}
	return nil
}

// report writes the status if it changed. It returns when to reconcile again, 0 if there is no need to. Events are
// those of the Flux: here, transitions are logged only.
func (r *FluxSetupReconciler) report(ctx context.Context, setup *v1alpha1.FluxSetup, observed setupObservation) (time.Duration, error) {
	key := client.ObjectKeyFromObject(setup)
	status, wait := setupStatus(setup, observed)
	if over(setup) && status.ExitCode != nil {
		r.terminations.forget(key)
	}
	if apiequality.Semantic.DeepEqual(status, setup.Status) {
		ctrl.LoggerFrom(ctx).V(1).Info("Nothing to change", "readyRanks", status.ReadyRanks)
		return wait, nil
	}
	if pause := r.pace.wait(key, observed.now); pause > 0 && onlyProgress(status, setup.Status) {
		return soonest(wait, pause), nil
	}
	before := setup.DeepCopy()
	setup.Status = status
	if err := writeStatus(ctx, r.Client, before, setup, setupFieldOwner); err != nil {
		return 0, err
	}
	r.pace.wrote(key, observed.now)
	announce(ctx, nil, setup, setupTransitions(before.Status, status))
	return wait, nil
}
