package controller

import (
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// retries remembers, for each Lolcow whose dependents could not be ensured, when the next try is due. The rate limiter of
// the queue cannot delay them alone: an event bypasses it, and each write of our own causes one. Without retries, a webhook
// that changes what is applied in another way each time would make the operator write without a pause.
type retries struct {
	limiter workqueue.TypedRateLimiter[reconcile.Request]

	mu     sync.Mutex
	failed map[reconcile.Request]failedTry
	// stale is the time since which each try has failed with a stale error.
	stale map[reconcile.Request]time.Time
}

// failedTry is the last try for one generation of a Lolcow.
type failedTry struct {
	uid        types.UID
	generation int64
	due        time.Time
	// left is the state of the dependents after it: if they differ from it later, another writer has changed them.
	left dependents
	err  error
}

// dependents is the part of a Lolcow's dependents that shows whether another writer has changed them: without status and
// annotations. The fields are exported because apiequality.Semantic compares only exported fields.
type dependents struct {
	Deployment *appsv1.Deployment
	Service    *corev1.Service
}

func newRetries(limiter workqueue.TypedRateLimiter[reconcile.Request]) *retries {
	return &retries{limiter: limiter, failed: map[reconcile.Request]failedTry{}, stale: map[reconcile.Request]time.Time{}}
}

// lastFailure returns the last try for the present spec if it failed, and how long the next one has to wait: 0 if it is due.
func (r *retries) lastFailure(req reconcile.Request, lolcow *v1alpha1.Lolcow, now time.Time) (failedTry, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.failed[req]
	if last.uid != lolcow.UID || last.generation != lolcow.Generation {
		return failedTry{}, 0
	}
	return last, max(0, last.due.Sub(now))
}

// recordFailure records that a try failed. The time to the next one doubles with each for one spec.
func (r *retries) recordFailure(req reconcile.Request, lolcow *v1alpha1.Lolcow, now time.Time, left dependents, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := r.failed[req]; last.uid != lolcow.UID || last.generation != lolcow.Generation {
		r.limiter.Forget(req)
	}
	r.failed[req] = failedTry{uid: lolcow.UID, generation: lolcow.Generation, due: now.Add(r.limiter.When(req)), left: left, err: err}
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

// dependentsOf returns that part of the dependents that were observed.
func dependentsOf(observed *observation) dependents {
	var found dependents
	if observed.deployment != nil {
		found.Deployment = &appsv1.Deployment{ObjectMeta: comparableMeta(observed.deployment), Spec: observed.deployment.Spec}
	}
	if observed.service != nil {
		found.Service = &corev1.Service{ObjectMeta: comparableMeta(observed.service), Spec: observed.service.Spec}
	}
	return found
}

// comparableMeta is the part of the metadata of a dependent that no write of our own changes.
func comparableMeta(object metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{UID: object.GetUID(), Labels: object.GetLabels(), OwnerReferences: object.GetOwnerReferences()}
}
