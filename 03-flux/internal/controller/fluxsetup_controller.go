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
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// refusalRetry is how often something is tried again that was refused, where no event tells that it would now be
// granted: the operator may watch neither Secrets nor quotas.
const refusalRetry = 5 * time.Second

// errStale says that the cache is behind what the API server has. The queue tries again at once, and then at
// longer and longer intervals.
var errStale = errors.New("the cache is behind: the FluxSetup has changed since")

// FluxSetupReconciler makes what the brokers of a Flux need, once for each attempt, and reports what it sees.
type FluxSetupReconciler struct {
	client.Client
	// APIReader reads past the cache.
	APIReader client.Reader
	Clock     clock.PassiveClock

	// Random is what certificates are made of.
	Random io.Reader
	// NewNonce returns a new word, by which the Job of an attempt is known.
	NewNonce func() string

	pace  pace
	words lastWords
}

// NewFluxSetupReconciler returns a reconciler that reads and writes through c, and through reader past the cache.
func NewFluxSetupReconciler(c client.Client, reader client.Reader) *FluxSetupReconciler {
	return &FluxSetupReconciler{
		Client: c, APIReader: reader, Clock: clock.RealClock{}, Random: rand.Reader, NewNonce: rand.Text,
	}
}

// Get is for what is read past the cache. Server-side apply is patch. Secrets can neither be listed nor watched,
// and pods not be touched. The finalizers are for blockOwnerDeletion in an owner reference, which the admission
// plugin OwnerReferencesPermissionEnforcement allows to no one else.
//
// +kubebuilder:rbac:groups=flux-framework.org,resources=fluxes,verbs=get;list;watch
// +kubebuilder:rbac:groups=flux-framework.org,resources=fluxsetups,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=flux-framework.org,resources=fluxsetups/status,verbs=patch
// +kubebuilder:rbac:groups=flux-framework.org,resources=fluxsetups/finalizers,verbs=update
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch

// Reconcile makes one pass over one FluxSetup: it does the same whatever woke it, and it may be called at any
// time and any number of times.
func (r *FluxSetupReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	// 1. Load. Deleted or on its way, or its Flux is: the garbage collector removes what it owns.
	setup, flux, err := r.load(ctx, req.NamespacedName)
	if err != nil || setup == nil {
		return ctrl.Result{}, err
	}

	// 2. Act. A refusal is reported; any other error (a time-out, a conflict, no connection) ends the pass, and
	// the queue tries again.
	seen := setupFacts{now: r.Clock.Now(), unowned: flux == nil}
	seen.refused, err = refusalOf(r.act(ctx, setup, &seen))
	if isLastTry(setup, seen, err) {
		seen.refused, err = &refusedError{reason: v1alpha1.ReasonApplyFailed, message: err.Error()}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}

	// 3. Observe, and report.
	if err := r.observe(ctx, setup, &seen); err != nil {
		return ctrl.Result{}, err
	}
	wait, err := r.report(ctx, setup, seen)
	if err != nil {
		return ctrl.Result{}, err
	}

	// 4. Now that the end is written, what is still at work may go. What has ended by itself is kept.
	if over(setup) && seen.job != nil && verdictOf(seen.job) == nil {
		if err := r.deleteJob(ctx, seen.job, nil); err != nil {
			return ctrl.Result{}, err
		}
	}

	// 5. Come back for what no event will announce.
	return ctrl.Result{RequeueAfter: wait}, nil
}

// load reads the FluxSetup, nil if there is nothing to be done for it, and the Flux that it belongs to, nil if
// there is none.
func (r *FluxSetupReconciler) load(ctx context.Context, key types.NamespacedName) (*v1alpha1.FluxSetup, *v1alpha1.Flux, error) {
	var setup v1alpha1.FluxSetup
	err := r.Get(ctx, key, &setup)
	if apierrors.IsNotFound(err) {
		r.pace.forget(key)
		r.words.forget(key)
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

// isLastTry tells whether an error has kept an attempt from being made until the time for its start is over: then
// it is the reason for its failure, and not tried again.
func isLastTry(setup *v1alpha1.FluxSetup, seen setupFacts, err error) bool {
	return err != nil && !errors.Is(err, errStale) && !apierrors.IsConflict(err) &&
		seen.job == nil && !setup.Spec.Suspend && !over(setup) && startupOver(setup, seen.now)
}

// ownerOf returns the Flux that the FluxSetup belongs to: the one of its name, if it is its controller. nil if
// there is no such Flux.
func (r *FluxSetupReconciler) ownerOf(ctx context.Context, setup *v1alpha1.FluxSetup) (*v1alpha1.Flux, error) {
	owner := metav1.GetControllerOf(setup)
	if owner == nil || owner.APIVersion != v1alpha1.GroupVersion.String() || owner.Kind != "Flux" || owner.Name != setup.Name {
		return nil, nil
	}
	// The cache may be behind in either direction.
	for _, reader := range []client.Reader{r.Client, r.APIReader} {
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

// act brings the world in line with the spec, and notes in seen what stands in the way.
func (r *FluxSetupReconciler) act(ctx context.Context, setup *v1alpha1.FluxSetup, seen *setupFacts) error {
	if seen.unowned {
		return nil
	}
	if setup.Spec.Suspend {
		return r.tearDown(ctx, setup, seen)
	}
	job, err := readJob(ctx, r.Client, setup)
	if err != nil {
		return err
	}
	switch kinship := kinshipOf(setup, job); {
	// 1. Nothing of an attempt that is over is made again.
	case over(setup):
		switch kinship {
		case jobPresent:
			seen.job = job
		case jobOlder:
			return r.deleteJob(ctx, job, nil)
		}
		return nil
	// 2. It is there. Only what the cluster lets slip is put right.
	case kinship == jobPresent:
		seen.job = job
		return r.keep(ctx, setup, seen)
	// 3. It is not there, or not that anybody knows.
	default:
		return r.launch(ctx, setup, seen)
	}
}

// observe adds what is known of the pods to the facts.
func (r *FluxSetupReconciler) observe(ctx context.Context, setup *v1alpha1.FluxSetup, seen *setupFacts) error {
	if seen.unowned || !launched(setup) {
		return nil
	}
	seen.last = r.words.of(client.ObjectKeyFromObject(setup), types.UID(setup.Spec.Launch.JobUID))
	if seen.job == nil {
		return nil
	}
	var err error
	if seen.pods, err = r.podsOf(ctx, setup, seen.job.UID); err != nil {
		return err
	}
	for i := range seen.pods {
		seen.last.note(endOfPod(&seen.pods[i], false), false)
	}
	return nil
}

// report writes the status if it changed. It returns when to come back, 0 if there is no need to.
func (r *FluxSetupReconciler) report(ctx context.Context, setup *v1alpha1.FluxSetup, seen setupFacts) (time.Duration, error) {
	key := client.ObjectKeyFromObject(setup)
	status, wait := setupStatus(setup, seen)
	if over(setup) && status.ExitCode != nil {
		r.words.forget(key)
	}
	if apiequality.Semantic.DeepEqual(status, setup.Status) {
		ctrl.LoggerFrom(ctx).V(1).Info("Nothing to change", "readyRanks", status.ReadyRanks)
		return wait, nil
	}
	if pause := r.pace.wait(key, seen.now); pause > 0 && onlyProgress(status, setup.Status) {
		return soonest(wait, pause), nil
	}
	// The lock is there because a merge patch replaces the whole list of conditions.
	before := setup.DeepCopy()
	setup.Status = status
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Status().Patch(ctx, setup, patch, client.FieldOwner(setupFieldOwner)); err != nil {
		return 0, fmt.Errorf("writing status of FluxSetup %s: %w", setup.Name, err)
	}
	r.pace.wrote(key, seen.now)
	logTransitions(ctx, before, setup)
	return wait, nil
}

// logTransitions tells the log which conditions have changed. Users are told by the Events of the Flux.
func logTransitions(ctx context.Context, before, setup *v1alpha1.FluxSetup) {
	for _, is := range setup.Status.Conditions {
		was := apimeta.FindStatusCondition(before.Status.Conditions, is.Type)
		if was == nil || was.Status != is.Status || was.Reason != is.Reason {
			ctrl.LoggerFrom(ctx).Info("Condition changed", "attempt", setup.Spec.Attempt,
				"condition", is.Type, "status", is.Status, "reason", is.Reason, "message", is.Message)
		}
	}
}

// soonest is the shorter of two waits, of which 0 is none.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// over tells whether the present attempt has ended: the latch. Nothing of it is made again.
func over(setup *v1alpha1.FluxSetup) bool {
	return current(setup) && (trueCondition(setup.Status.Conditions, v1alpha1.ConditionComplete) != nil ||
		trueCondition(setup.Status.Conditions, v1alpha1.ConditionFailed) != nil)
}
