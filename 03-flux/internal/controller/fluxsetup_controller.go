package controller

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
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
	// apiReader reads from the API server instead of the cache.
	apiReader client.Reader
	clock     clock.PassiveClock
	// certificateKey is the key from which certificates are derived. It is random, and is kept in memory only.
	certificateKey []byte

	throttle     throttle
	skews        skews
	retries      *retries
	terminations podTerminations
}

// NewFluxSetupReconciler returns a reconciler that reads and writes through c. It uses apiReader to bypass the cache.
func NewFluxSetupReconciler(c client.Client, apiReader client.Reader, clock clock.PassiveClock) *FluxSetupReconciler {
	r := &FluxSetupReconciler{
		Client: gatedClient{c}, apiReader: apiReader, clock: clock, certificateKey: make([]byte, sha256.Size),
		retries: newRetries(clock, newRateLimiter(), setupRetryable),
	}
	rand.Read(r.certificateKey)
	return r
}

// The verb get is for reads that bypass the cache. Server-side apply needs patch, and create where the object does not
// exist yet. The controller can neither list nor watch Secrets, and cannot change pods. The garbage collector deletes
// ConfigMaps and Secrets with the Job that owns them. The permission for finalizers is needed to set blockOwnerDeletion
// in an owner reference: the admission plugin OwnerReferencesPermissionEnforcement checks it.
//
// +kubebuilder:rbac:groups=flux-framework.org,resources=fluxes,verbs=get;list;watch
// +kubebuilder:rbac:groups=flux-framework.org,resources=fluxsetups,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=flux-framework.org,resources=fluxsetups/status,verbs=patch
// +kubebuilder:rbac:groups=flux-framework.org,resources=fluxsetups/finalizers,verbs=update
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=batch,resources=jobs/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch

// Reconcile compares the dependents of one FluxSetup with their desired state and corrects the differences. It is
// level-based: its result does not depend on what triggered it, and it may be called at any time and any number of
// times.
func (r *FluxSetupReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	// 1. Fetch.
	var setup v1alpha1.FluxSetup
	err := r.Get(ctx, req.NamespacedName, &setup)
	if apierrors.IsNotFound(err) {
		r.throttle.forget(req.NamespacedName)
		r.skews.forget(req.NamespacedName)
		r.retries.forget(req)
		r.terminations.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}

	// 2. Finalize. Nothing runs for a FluxSetup that is being deleted. Nothing runs either while its Flux is being
	//    deleted, or has not recorded the FluxSetup yet: when it records it, that triggers a reconciliation.
	if !setup.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.finalize(ctx, &setup)
	}
	flux, err := r.ownerOf(ctx, &setup)
	if err != nil || (flux != nil && (!flux.DeletionTimestamp.IsZero() || flux.Status.SetupRef == nil)) {
		return ctrl.Result{}, err
	}

	// 3. Ensure the dependents, and 4. observe the pods. Failures are reported too, unless the cache was stale: then the
	//    queue retries.
	endedBefore := attemptEnded(&setup)
	observed := setupObservation{notOwned: flux == nil}
	r.observeTime(&setup, &observed)
	actCtx, cancel := untilReport(ctx)
	defer cancel()
	err = errors.Join(r.retries.try(actCtx, req, &setup, func(ctx context.Context) error {
		defer r.observeTime(&setup, &observed)
		return r.ensureDependents(ctx, &setup, &observed)
	}), r.observePods(ctx, &setup, &observed))
	if err = r.retries.reportable(req, r.clock.Now(), err); isStale(err) {
		return ctrl.Result{}, err
	}
	if errors.Is(err, errNamespaceTerminating) {
		return ctrl.Result{}, nil
	}
	observed.failure = failureOf(err)

	// 5. Report. Once the end of an attempt is written, what still runs of it may be deleted. If that fails, the next
	//    reconciliation retries it, and reports the failure.
	wait, reportErr := r.report(ctx, &setup, observed)
	if reportErr != nil {
		return ctrl.Result{}, errors.Join(err, reportErr)
	}
	if !endedBefore && attemptEnded(&setup) && observed.job != nil {
		err = errors.Join(err, r.deleteEnded(ctx, &setup, observed.job))
	}

	// 6. Requeue for what no event will trigger.
	return requeue(wait, setupRetryable(err))
}

// ownerOf returns the Flux that controls the FluxSetup: it must have the same name. nil if there is no such Flux.
func (r *FluxSetupReconciler) ownerOf(ctx context.Context, setup *v1alpha1.FluxSetup) (*v1alpha1.Flux, error) {
	owner := metav1.GetControllerOf(setup)
	if owner == nil || owner.APIVersion != v1alpha1.SchemeGroupVersion.String() || owner.Kind != "Flux" || owner.Name != setup.Name {
		return nil, nil
	}
	// The cache may be older or newer than the FluxSetup.
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

// observeTime adds the current time to the observation. It is never before the launch and the start of the Job, which another
// replica may have recorded by its own clock.
func (r *FluxSetupReconciler) observeTime(setup *v1alpha1.FluxSetup, observed *setupObservation) {
	key := client.ObjectKeyFromObject(setup)
	for _, recorded := range []time.Time{launchTime(setup), startTime(observed.job)} {
		observed.now = r.skews.now(key, r.clock.Now(), recorded)
	}
	observed.since = r.skews.since(key)
}

// ensureDependents brings the dependents in line with the spec, and records in observed what prevents it.
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
	r.observeTime(setup, observed)
	switch {
	// 1. The attempt has ended. Nothing of it is created again.
	case attemptEnded(setup):
		err := r.deleteSuperseded(ctx, jobs)
		if jobs.current != nil {
			err = errors.Join(err, r.deleteEnded(ctx, setup, jobs.current))
		}
		return err
	// 2. The Job was started. Only what has drifted is corrected.
	case !lost(jobs.current) && jobRecorded(setup) && started(jobs.current):
		return errors.Join(r.deleteSuperseded(ctx, jobs), r.maintain(ctx, setup, observed))
	// 3. The Job was not started, as far as the cache shows, or it is lost.
	default:
		return r.launch(ctx, setup, observed)
	}
}

// observePods adds what is known of the pods to the observation.
func (r *FluxSetupReconciler) observePods(ctx context.Context, setup *v1alpha1.FluxSetup, observed *setupObservation) error {
	if observed.notOwned || !launchRecorded(setup) {
		return nil
	}
	observed.ends = r.terminations.of(client.ObjectKeyFromObject(setup), types.UID(setup.Spec.Launch.JobUID))
	if observed.job == nil && !observed.lost {
		return nil
	}
	// The cache may be stale, and it lacks pods that have lost our label. An attempt is therefore Failed only by the state in
	// the API server, and how rank 0 ended is read there if it is no longer in the cache. What is left of a Job that was deleted
	// is read there alone.
	if observed.job != nil {
		err := r.readPods(ctx, r.Client, setup, observed)
		if err != nil || (!failing(setup, *observed) && !lacksLeader(setup, *observed)) {
			return err
		}
		if err := r.readCurrentJob(ctx, observed); err != nil {
			return err
		}
	}
	return r.readPods(ctx, r.apiReader, setup, observed)
}

// readPods adds the state of the Job's pods to the observation. Those of a deleted Job may exist for longer than it.
func (r *FluxSetupReconciler) readPods(ctx context.Context, reader client.Reader, setup *v1alpha1.FluxSetup, observed *setupObservation) error {
	job := observed.job
	if job == nil {
		job = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: jobName(setup), Namespace: setup.Namespace, UID: types.UID(setup.Spec.Launch.JobUID)}}
	}
	pods, err := r.podsOf(ctx, reader, job)
	if err != nil {
		observed.job = nil
		return err
	}
	observed.pods = pods
	for i := range pods {
		observed.ends.note(endOfPod(&pods[i], false), false)
	}
	if leader := observed.ends.leader; jobResult(job) != nil || (leader != nil && leader.ended) {
		observed.ends.since = r.terminations.ended(client.ObjectKeyFromObject(setup), job.UID, observed.now)
	}
	return nil
}

// report writes the status if it changed. It returns when to reconcile again; 0 if there is no need to. Events are
// recorded for the Flux only: here, transitions are logged.
func (r *FluxSetupReconciler) report(ctx context.Context, setup *v1alpha1.FluxSetup, observed setupObservation) (time.Duration, error) {
	key := client.ObjectKeyFromObject(setup)
	status, wait := setupStatus(setup, observed)
	if trueCondition(status.Conditions, v1alpha1.ConditionQuorumReached) == nil {
		wait = soonest(wait, untilPodsAreMissed(setup, observed))
	}
	if attemptEnded(setup) && status.ExitCode != nil {
		r.terminations.forget(key)
	}
	if apiequality.Semantic.DeepEqual(status, setup.Status) {
		ctrl.LoggerFrom(ctx).V(1).Info("Nothing to change", "readyRanks", status.ReadyRanks)
		return wait, nil
	}
	if pause := r.throttle.wait(key, observed.now); pause > 0 && onlyProgress(status, setup.Status) {
		return soonest(wait, pause), nil
	}
	before := setup.DeepCopy()
	setup.Status = status
	if err := writeStatus(ctx, r.Client, before, setup, setupFieldOwner); err != nil {
		return 0, err
	}
	r.throttle.wrote(key, observed.now)
	announce(ctx, nil, setup, setupTransitions(before.Status, status))
	return wait, nil
}

// setupRetryable returns the part of an error that is retried. A name conflict is not: the deletion of the other
// object triggers a reconciliation. What prevents a launch is permanent.
func setupRetryable(err error) error {
	for _, reason := range []string{v1alpha1.ReasonNameConflict, v1alpha1.ReasonNotOwned, v1alpha1.ReasonFinished, v1alpha1.ReasonSetupChanged} {
		err = without(err, reason)
	}
	return err
}
