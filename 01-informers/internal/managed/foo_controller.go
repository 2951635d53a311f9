// Package managed is the Foo controller on controller-runtime: what internal/raw makes of client-go's parts,
// a manager brings along here. Both do the same, and internal/conformance holds them to it.
package managed

import (
	"context"
	"errors"
	"fmt"
	"time"

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
// It needs the permissions in config/rbac/role.yaml. The markers which that file is generated from are in
// internal/raw: both implementations need the same.
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

	// 2. Act, if a try is due. What fails is reported too, unless what was read is stale: then the queue tries
	// again.
	seen, wait, err := r.act(ctx, &f)
	switch {
	case foo.NamespaceIsTerminating(err):
		return ctrl.Result{}, nil
	case errors.Is(err, foo.ErrStale):
		return ctrl.Result{}, err
	case err != nil:
		seen.Refused = foo.Transient(err)
	}

	// 3. Report.
	if err := errors.Join(err, r.report(ctx, &f, seen)); err != nil {
		return ctrl.Result{}, err
	}

	// 4. Requeue for what no event will announce: the next try. With 0 the queue forgets the key.
	return ctrl.Result{RequeueAfter: wait}, nil
}

// act makes one try to bring the Deployment in line, if one is due, and returns what it observed and when the next try
// is due.
func (r *FooReconciler) act(ctx context.Context, f *v1alpha1.Foo) (foo.Facts, time.Duration, error) {
	verdict := r.attempts.Of(f)
	deployment, err := r.find(ctx, f)
	if err == nil && verdict.MayTry() {
		if deployment, err = r.apply(ctx, f, deployment); err == nil {
			err = r.deleteOthers(ctx, f)
		}
		if err == nil {
			r.attempts.Forget(client.ObjectKeyFromObject(f))
			verdict = foo.Verdict{}
		}
	}

	refused := foo.AsRefusal(err)
	switch {
	case err != nil && refused == nil:
		return foo.Facts{Deployment: deployment}, 0, err
	// Given up, or not due yet: what was reported still holds.
	case verdict.GaveUp, refused == nil:
		refused = verdict.Refused
	case refused.Reason == v1alpha1.ReasonApplyFailed:
		verdict = r.attempts.Refuse(f, refused)
	}
	return foo.Facts{Deployment: deployment, Refused: refused, GaveUp: verdict.GaveUp}, verdict.Wait, nil
}
