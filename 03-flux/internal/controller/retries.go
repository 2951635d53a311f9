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

	"example.com/workbook/03-flux/api/v1alpha1"
)

// retries remembers, for each object whose dependents could not be written, when the next try is due. The rate limiter of
// the queue cannot delay them alone: an event bypasses it, and each write of our own causes one. Without retries, a webhook
// that changes what is written in another way each time, or rejects it for another reason, would make the operator write
// without a pause.
type retries struct {
	clock clock.PassiveClock
	// limiter is one like the queue's: see newRateLimiter in watches.go.
	limiter workqueue.TypedRateLimiter[reconcile.Request]
	// retryable returns what of an error is tried again; the rest waits for an event.
	retryable func(error) error

	mu     sync.Mutex
	failed map[reconcile.Request]failedTry
	// stale is the time since which each try has failed with a stale error.
	stale map[reconcile.Request]time.Time
}

// failedTry is the last try for one generation of an object.
type failedTry struct {
	uid        types.UID
	generation int64
	due        time.Time
	err        error
}

func newRetries(clock clock.PassiveClock, limiter workqueue.TypedRateLimiter[reconcile.Request], retryable func(error) error) *retries {
	return &retries{clock: clock, limiter: limiter, retryable: retryable, failed: map[reconcile.Request]failedTry{}, stale: map[reconcile.Request]time.Time{}}
}

// try calls act, which may write what the object needs. If the last try for the present spec failed, and the next one is not
// due, act reads only: as soon as it is about to write, it fails as the last one did.
func (r *retries) try(ctx context.Context, req reconcile.Request, object client.Object, act func(context.Context) error) error {
	last := r.lastFailure(req, object)
	gate := &writeGate{err: last.err}
	if r.clock.Now().Before(last.due) {
		ctx = context.WithValue(ctx, gateKey{}, gate)
	}
	err := act(ctx)
	switch {
	case gate.hit:
		return last.err
	case isStale(err):
	case r.retryable(err) == nil:
		r.forget(req)
	default:
		r.recordFailure(req, object, err)
	}
	return err
}

// lastFailure returns the last try for the present spec if it failed.
func (r *retries) lastFailure(req reconcile.Request, object client.Object) failedTry {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.failed[req]
	if last.uid != object.GetUID() || last.generation != object.GetGeneration() {
		return failedTry{}
	}
	return last
}

// recordFailure records that a try has just failed, perhaps after a long time. The time to the next one doubles with each
// for one spec.
func (r *retries) recordFailure(req reconcile.Request, object client.Object, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := r.failed[req]; last.uid != object.GetUID() || last.generation != object.GetGeneration() {
		r.limiter.Forget(req)
	}
	r.failed[req] = failedTry{uid: object.GetUID(), generation: object.GetGeneration(), due: r.clock.Now().Add(r.limiter.When(req)), err: err}
}

// staleTimeout is how long each try for an object may fail with a stale error until that is reported. Usually the cache
// catches up within moments, but an admission webhook, for instance, may reject each request with a Conflict.
const staleTimeout = 30 * time.Second

// reportable returns err, unless each try has failed with a stale error for staleTimeout: then it returns one that is reported.
func (r *retries) reportable(req reconcile.Request, now time.Time, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	since, repeated := r.stale[req]
	switch {
	case !isStale(err):
		delete(r.stale, req)
		return err
	case !repeated:
		r.stale[req] = now
		return err
	case now.Sub(since) < staleTimeout:
		return err
	}
	var all []error
	for _, one := range split(err) {
		if isStale(one) {
			message := fmt.Sprintf("each try has failed for more than %v: %s", staleTimeout, normalizeMessage(one.Error()))
			one = &rejectedError{reason: v1alpha1.ReasonAPIError, message: message, cause: one}
		}
		all = append(all, one)
	}
	return errors.Join(all...)
}

// forget makes the next try due, because the last one succeeded, its obstacle may be gone, or the object no longer exists.
func (r *retries) forget(req reconcile.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limiter.Forget(req)
	delete(r.failed, req)
	delete(r.stale, req)
}

// requeue returns the result of Reconcile. An error is retried with the back-off of the queue; if an event triggers a
// reconciliation earlier, retries delay the try nevertheless. Without an error, the next reconciliation comes after wait; 0 if
// an event will trigger it.
func requeue(wait time.Duration, err error) (reconcile.Result, error) {
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// writeGate is in the context of a try that is not due, and blocks its writes: a write fails with err, and hit is set.
type writeGate struct {
	err error
	hit bool
}

type gateKey struct{}

// gateError is the error with which a write fails; nil if the write is allowed.
func gateError(ctx context.Context) error {
	gate, found := ctx.Value(gateKey{}).(*writeGate)
	if !found {
		return nil
	}
	gate.hit = true
	return gate.err
}

// gatedClient is a client that writes no object while a try is not due. The gate does not block writes of the status.
type gatedClient struct {
	client.Client
}

func (c gatedClient) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	if err := gateError(ctx); err != nil {
		return err
	}
	return c.Client.Create(ctx, object, options...)
}

func (c gatedClient) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	if err := gateError(ctx); err != nil {
		return err
	}
	return c.Client.Update(ctx, object, options...)
}

func (c gatedClient) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if err := gateError(ctx); err != nil {
		return err
	}
	return c.Client.Patch(ctx, object, patch, options...)
}

func (c gatedClient) Apply(ctx context.Context, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	if err := gateError(ctx); err != nil {
		return err
	}
	return c.Client.Apply(ctx, object, options...)
}

func (c gatedClient) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	if err := gateError(ctx); err != nil {
		return err
	}
	return c.Client.Delete(ctx, object, options...)
}
