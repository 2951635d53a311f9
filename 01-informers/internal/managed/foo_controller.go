// Package managed is the Foo controller on controller-runtime. Its manager has what internal/raw builds from client-go. Both
// do the same, and internal/conformance tests both.
package managed

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
)

// FooReconciler brings the Deployments of Foos in line with their specs and reports what it observes.
//
// It needs the permissions in config/rbac/role.yaml. The markers are in internal/raw: both implementations need the same.
type FooReconciler struct {
	client.Client
	recorder events.EventRecorder
	clock    clock.PassiveClock
	attempts *foo.Attempts

	// image is the container image of every Foo's Deployment.
	image string
}

// NewFooReconciler returns a reconciler that reads and writes through c. A Deployment that the API server rejects is
// tried again maxRetries times.
func NewFooReconciler(c client.Client, recorder events.EventRecorder, clock clock.PassiveClock, image string, maxRetries int) *FooReconciler {
	return &FooReconciler{
		Client:   c,
		recorder: recorder,
		clock:    clock,
		attempts: foo.NewAttempts(maxRetries, clock),
		image:    image,
	}
}

// Reconcile compares the Deployment of one Foo with its spec and corrects what differs. It does the same whatever
// triggered it, and it may be called at any time and any number of times.
func (r *FooReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	// 1. Fetch. The garbage collector deletes what a deleted Foo owns.
	var f v1alpha1.Foo
	err := r.Get(ctx, req.NamespacedName, &f)
	if apierrors.IsNotFound(err) {
		r.attempts.Forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading Foo %s: %w", req, err)
	}
	if !f.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}

	// 2. Act, if the back-off after a rejection has ended. Errors are reported in the status too, except a stale one: it means
	// that the cache is out of date, so the status would be too.
	acting, stop := foo.UntilReport(ctx)
	defer stop()
	observed, wait, err := r.tryDeployment(acting, &f)
	switch {
	case errors.Is(err, foo.ErrNamespaceTerminating):
		return ctrl.Result{}, nil
	case errors.Is(err, foo.ErrStale):
		return ctrl.Result{}, err
	case err != nil:
		observed.Failure = foo.Transient(err)
	}

	// 3. Report.
	if err := errors.Join(err, r.report(ctx, &f, observed)); err != nil {
		return ctrl.Result{}, err
	}

	// 4. Requeue if no event triggers the next try. With 0 the queue forgets the key.
	return ctrl.Result{RequeueAfter: wait}, nil
}

// tryDeployment tries to bring the Deployment in line with the spec, if a try is due. It returns what it observed and when the
// next try is due.
func (r *FooReconciler) tryDeployment(ctx context.Context, f *v1alpha1.Foo) (foo.Observation, time.Duration, error) {
	deployment, err := r.findDeployment(ctx, f)
	if deployment == nil {
		r.attempts.NoteMissing(f)
	}
	retry := r.attempts.Of(f)
	tried := err == nil && retry.Due()
	if tried {
		if deployment, err = r.ensureDeployment(ctx, f, deployment); err == nil {
			r.attempts.Forget(client.ObjectKeyFromObject(f))
			retry = foo.Retry{}
		}
	}

	failure := foo.AsRejected(err)
	switch {
	// The cache lacks the Deployment that has the name, so no event may report that the name is free again.
	case tried && foo.IsNameConflict(failure):
		return foo.Observation{Failure: failure}, foo.UncachedRetry, nil
	case err != nil && failure == nil:
		return foo.Observation{Deployment: deployment}, 0, err
	// There was no try: the last failure is still reported.
	case retry.Exhausted, failure == nil:
		failure = retry.Failure
	case failure.Reason == v1alpha1.ReasonApplyFailed:
		retry = r.attempts.NoteRejected(f, failure)
	}
	// The Deployment may have the desired values nevertheless, because another writer has changed it back.
	if failure != nil && foo.HasDesiredValues(deployment, foo.Deployment(f, r.image)) {
		others, err := r.findOthers(ctx, f)
		if err != nil || len(others) == 0 {
			r.attempts.NoteHasDesiredValues(f)
			return foo.Observation{Deployment: deployment}, retry.Wait, err
		}
	}
	return foo.Observation{Deployment: deployment, Failure: failure, Exhausted: retry.Exhausted}, retry.Wait, nil
}

// ensureDeployment applies the Deployment of the spec. Then it deletes those of earlier specs, so that the Foo always has
// one. A Deployment that is being deleted does not count.
func (r *FooReconciler) ensureDeployment(ctx context.Context, f *v1alpha1.Foo, live *appsv1.Deployment) (*appsv1.Deployment, error) {
	deployment, err := r.apply(ctx, f, live)
	if err != nil || !deployment.DeletionTimestamp.IsZero() {
		return deployment, err
	}
	return deployment, r.deleteOthers(ctx, f)
}
