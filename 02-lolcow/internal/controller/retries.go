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
// the queue cannot pace them alone: an event bypasses it, and each write of our own is one. A webhook that changes what is
// applied in another way each time kept the operator writing for ever, without a pause.
type retries struct {
	limiter workqueue.TypedRateLimiter[reconcile.Request]

	mu     sync.Mutex
	failed map[reconcile.Request]failedTry
	// stale is since when each try is stale.
	stale map[reconcile.Request]time.Time
}

// failedTry is the last try for one generation of a Lolcow.
type failedTry struct {
	uid        types.UID
	generation int64
	due        time.Time
	// left is what the dependents were after it: what differs since, another writer has changed.
	left dependents
	err  error
}

// dependents are what matters of a Lolcow's dependents: not their status, and no annotation. The fields are exported to be
// comparable.
type dependents struct {
	Deployment *appsv1.Deployment
	Service    *corev1.Service
}

func newRetries(limiter workqueue.TypedRateLimiter[reconcile.Request]) *retries {
	return &retries{limiter: limiter, failed: map[reconcile.Request]failedTry{}, stale: map[reconcile.Request]time.Time{}}
}

// of returns the last try for the present spec if it failed, and how long the next one has to wait: 0 if it is due.
func (r *retries) of(req reconcile.Request, lolcow *v1alpha1.Lolcow, now time.Time) (failedTry, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.failed[req]
	if last.uid != lolcow.UID || last.generation != lolcow.Generation {
		return failedTry{}, 0
	}
	return last, max(0, last.due.Sub(now))
}

// note notes that a try failed. The time to the next one doubles with each for one spec.
func (r *retries) note(req reconcile.Request, lolcow *v1alpha1.Lolcow, now time.Time, left dependents, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := r.failed[req]; last.uid != lolcow.UID || last.generation != lolcow.Generation {
		r.limiter.Forget(req)
	}
	r.failed[req] = failedTry{uid: lolcow.UID, generation: lolcow.Generation, due: now.Add(r.limiter.When(req)), left: left, err: err}
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

// dependentsOf returns what matters of those that were observed.
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

// comparableMeta is what matters of the metadata of a dependent: no write of our own changes it.
func comparableMeta(object metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{UID: object.GetUID(), Labels: object.GetLabels(), OwnerReferences: object.GetOwnerReferences()}
}
