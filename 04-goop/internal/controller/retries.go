package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// retries remembers, for each object whose dependents could not be written, when the next try is due. The rate limiter of
// the queue cannot pace them alone: an event bypasses it, and each write of our own is one. A webhook that changes what is
// written in another way each time, or rejects it for another reason, kept the operator writing without a pause.
type retries struct {
	clock clock.PassiveClock
	// limiter is one like the queue's: see newRateLimiter in watches.go.
	limiter workqueue.TypedRateLimiter[reconcile.Request]
	// retried returns what of an error is tried again; the rest waits for an event.
	retried func(error) error

	mu     sync.Mutex
	failed map[reconcile.Request]failedTry
	// stale is since when each try is stale.
	stale map[reconcile.Request]time.Time
}

// failedTry is the last try for one generation of an object.
type failedTry struct {
	uid        types.UID
	generation int64
	due        time.Time
	err        error
}

func newRetries(clock clock.PassiveClock, limiter workqueue.TypedRateLimiter[reconcile.Request], retried func(error) error) *retries {
	return &retries{clock: clock, limiter: limiter, retried: retried, failed: map[reconcile.Request]failedTry{}, stale: map[reconcile.Request]time.Time{}}
}

// try calls act, which may write what the object needs. If the last try for the present spec failed, and the next one is not
// due, act reads only: as soon as it is about to write, it fails as the last one did. What act writes within a try of other
// retries is due by those alone, and says nothing of what failed here.
func (r *retries) try(ctx context.Context, req reconcile.Request, object client.Object, act func(context.Context) error) error {
	last := r.of(req, object)
	held := &hold{active: r.clock.Now().Before(last.due), err: last.err}
	err := act(context.WithValue(ctx, holdKey{}, held))
	if outer, nested := ctx.Value(holdKey{}).(*hold); nested {
		outer.succeeded, outer.waits = outer.succeeded || err == nil, outer.waits || held.hit
	}
	switch {
	case held.hit:
		return last.err
	case isStale(err), held.waits, held.succeeded && err == nil:
	case r.retried(err) == nil:
		r.forget(req)
	default:
		r.note(req, object, err)
	}
	return err
}

// of returns the last try for the present spec if it failed.
func (r *retries) of(req reconcile.Request, object client.Object) failedTry {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.failed[req]
	if last.uid != object.GetUID() || last.generation != object.GetGeneration() {
		return failedTry{}
	}
	return last
}

// note notes that a try has just failed, perhaps after a long time. The time to the next one doubles with each for one spec.
func (r *retries) note(req reconcile.Request, object client.Object, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := r.failed[req]; last.uid != object.GetUID() || last.generation != object.GetGeneration() {
		r.limiter.Forget(req)
	}
	r.failed[req] = failedTry{uid: object.GetUID(), generation: object.GetGeneration(), due: r.clock.Now().Add(r.limiter.When(req)), err: err}
}

// stalePatience is for how long each try for an object may be stale until that is reported. The cache catches up within
// moments. What does not pass is for instance a Conflict that the API server, or what it asks, returns to each request.
const stalePatience = 30 * time.Second

// outlast returns err. If that is stale, and each one before it was for stalePatience, it is an error that is reported.
func (r *retries) outlast(req reconcile.Request, now time.Time, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	since, lasts := r.stale[req]
	switch {
	case !isStale(err):
		delete(r.stale, req)
		return err
	case !lasts:
		r.stale[req] = now
		return err
	case now.Sub(since) < stalePatience:
		return err
	}
	var all []error
	for _, one := range split(err) {
		if isStale(one) {
			message := fmt.Sprintf("each try for more than %v: %s", stalePatience, normalizeMessage(one.Error()))
			one = &rejectedError{reason: v1alpha1.ReasonAPIError, message: message, cause: one}
		}
		all = append(all, one)
	}
	return errors.Join(all...)
}

// forget makes the next try due: the last one succeeded, what was in its way may be gone, or the object is.
func (r *retries) forget(req reconcile.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limiter.Forget(req)
	delete(r.failed, req)
	delete(r.stale, req)
}

// requeue is what Reconcile returns at its end. What is tried again is so at the pace of the queue, which retries keep when an
// event comes first. Otherwise the next reconciliation comes after wait; 0 if an event will trigger it.
func requeue(wait time.Duration, again error) (reconcile.Result, error) {
	if again != nil {
		return reconcile.Result{}, again
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// hold is in the context of a try. While it is active, no write may happen: it says how one fails, and whether one was about
// to happen.
type hold struct {
	active bool
	err    error
	hit    bool
	// Of the tries of other retries within it, one succeeded, and one was not due.
	succeeded, waits bool
}

type holdKey struct{}

// heldBy is the error with which a write fails; nil if it may be done.
func heldBy(ctx context.Context) error {
	held, isTry := ctx.Value(holdKey{}).(*hold)
	if !isTry || !held.active {
		return nil
	}
	held.hit = true
	return held.err
}

// holdingClient is a client that writes no object while a try is not due. The status is written all the same.
type holdingClient struct {
	client.Client
}

func (c holdingClient) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	if err := heldBy(ctx); err != nil {
		return err
	}
	return c.Client.Create(ctx, object, options...)
}

func (c holdingClient) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	if err := heldBy(ctx); err != nil {
		return err
	}
	return c.Client.Update(ctx, object, options...)
}

func (c holdingClient) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if err := heldBy(ctx); err != nil {
		return err
	}
	return c.Client.Patch(ctx, object, patch, options...)
}

func (c holdingClient) Apply(ctx context.Context, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	if err := heldBy(ctx); err != nil {
		return err
	}
	return c.Client.Apply(ctx, object, options...)
}

func (c holdingClient) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	if err := heldBy(ctx); err != nil {
		return err
	}
	return c.Client.Delete(ctx, object, options...)
}
