// Package controller spreads the work of Goops over nodes: a DaemonSet for each round, and a record of what is done.
package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// fieldOwner is the name under which the API server records the fields that this controller owns.
const fieldOwner = "goop-controller"

// refusalRetry is how often something is tried again that was refused, where no event tells that it would now be
// granted: the operator does not watch quotas.
const refusalRetry = 5 * time.Second

// errStale says that the cache is behind what the API server has. The queue tries again at once, and then at
// longer and longer intervals.
var errStale = errors.New("the cache is behind: the Goop has changed since")

// GoopReconciler spreads the work of Goops over nodes, and reports what it sees.
type GoopReconciler struct {
	client.Client
	// APIReader reads past the cache.
	APIReader client.Reader
	Recorder  events.EventRecorder
	Clock     clock.PassiveClock

	// Images are those that workers are made of.
	Images Images
	// AllowHostAccess grants what Goops ask for in spec.host.
	AllowHostAccess bool

	pace pace
}

// NewGoopReconciler returns a reconciler that reads and writes through c, and through reader past the cache.
func NewGoopReconciler(c client.Client, reader client.Reader, recorder events.EventRecorder, images Images) *GoopReconciler {
	return &GoopReconciler{Client: c, APIReader: reader, Recorder: recorder, Clock: clock.RealClock{}, Images: images}
}

// Get is for what is read past the cache. Goops are patched for their finalizer only. The goops/finalizers are for
// blockOwnerDeletion in an owner reference, which the admission plugin OwnerReferencesPermissionEnforcement allows to
// no one else.
//
// +kubebuilder:rbac:groups=goop.example.com,resources=goops,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=goop.example.com,resources=goops/status,verbs=patch
// +kubebuilder:rbac:groups=goop.example.com,resources=goops/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=daemonsets,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile makes one pass over one Goop: it does the same whatever woke it, and it may be called at any time and
// any number of times. It finds the first thing that is out of order, mends it, and returns: the change itself calls
// it again. At last it reports.
func (r *GoopReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	seen, err := r.look(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	// Gone, or about to be with nothing to clean up: the garbage collector removes what it owns.
	if seen == nil {
		r.pace.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if !seen.goop.DeletionTimestamp.IsZero() {
		return seen.result(r.mend(ctx, seen, r.beforeItGoes()))
	}
	mended, err := r.mend(ctx, seen, r.whileItLives())
	if err == nil && !mended {
		mended, err = r.report(ctx, seen)
	}
	return seen.result(mended, err)
}

// mend takes step after step until one has put something in order. The steps build on each other: after one that was
// refused there is no other.
func (r *GoopReconciler) mend(ctx context.Context, seen *facts, steps []step) (bool, error) {
	for _, step := range steps {
		mended, err := step(ctx, seen)
		if err != nil && seen.takeRefusal(err) == nil {
			return false, nil
		}
		if mended || err != nil {
			return mended, err
		}
	}
	return false, nil
}

// step puts one thing in order, and tells whether it was not. The error is a *refusedError if it cannot be.
type step func(context.Context, *facts) (mended bool, err error)

func (r *GoopReconciler) whileItLives() []step {
	return []step{
		r.hold,         // 1. With a cleanup to come, the Goop may not go unnoticed.
		r.begin,        // 2. The start is recorded; a suspension ends it.
		r.recordShards, // 3. The record is known by its uids, before work is in it.
		r.remember,     // 4. What workers tell is recorded.
		r.end,          // 5. Complete or Failed, before anything is taken away.
		r.clear,        // 6. After the TTL nothing is left.
		r.spread,       // 7. The DaemonSets are as planned.
	}
}

func (r *GoopReconciler) beforeItGoes() []step {
	return []step{
		r.giveUp,       // 1. The time for the cleanup is over.
		r.recordShards, // 2. The record is known by its uids.
		r.remember,     // 3. Where work has begun is recorded.
		r.stop,         // 4. The work ends.
		r.startCleanup, // 5. The cleanup runs where work was.
		r.release,      // 6. The Goop goes.
	}
}

// hold sets the finalizer, before there is anything to clean up.
func (r *GoopReconciler) hold(ctx context.Context, seen *facts) (bool, error) {
	if len(seen.goop.Spec.CleanupCmd) == 0 || seen.narrow || hasFinalizer(seen.goop) {
		return false, nil
	}
	return true, r.setFinalizers(ctx, seen.goop, append(slices.Clip(seen.goop.Finalizers), v1alpha1.CleanupFinalizer))
}

// end writes the end of the work, once it is known.
func (r *GoopReconciler) end(ctx context.Context, seen *facts) (bool, error) {
	end, left := endOf(seen)
	seen.comeBack(left)
	if end == nil {
		return false, nil
	}
	return true, r.writeStatus(ctx, seen, endStatus(seen, *end))
}

// report writes the status if it changed, but not more often than the pace allows, except for the first.
func (r *GoopReconciler) report(ctx context.Context, seen *facts) (bool, error) {
	r.watchPods(seen)
	status := desiredStatus(seen)
	if sameStatus(status, seen.goop.Status) {
		ctrl.LoggerFrom(ctx).V(1).Info("Nothing to change", "running", status.Running)
		return false, nil
	}
	first := len(seen.goop.Status.Conditions) == 0
	if wait := r.pace.wait(seen.key(), writesStatus, seen.now); wait > 0 && !first {
		seen.comeBack(wait)
		return false, nil
	}
	if err := r.writeStatus(ctx, seen, status); err != nil {
		return false, err
	}
	if !first {
		r.pace.wrote(seen.key(), writesStatus, seen.now)
	}
	return true, nil
}

// watchPods notes whether no pod is made for work that is to be done. No event will tell that: the pass comes back.
func (r *GoopReconciler) watchPods(seen *facts) {
	lacking := lacksPods(seen)
	idle := r.pace.idles(seen.key(), lacking, seen.now)
	seen.noPods = idle >= podsPatience
	if lacking {
		seen.comeBack(podsPatience - idle)
	}
}
