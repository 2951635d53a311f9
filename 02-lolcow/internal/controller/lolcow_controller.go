// Package controller brings the cluster to the state that the spec of a Lolcow describes: one Deployment and one Service.
//
// Its files in the order of reading. A function calls functions of its own file and of later ones only:
//
//	lolcow_controller.go  Reconcile, step by step
//	watches.go            what triggers a reconciliation, and what the cache holds
//	apply.go              how a dependent is written
//	report.go             how the status and Events are written
//	retries.go            when a try that failed is repeated
//	resources.go          spec → desired dependents
//	status.go             what was observed → conditions
//	pods.go               what pods say of themselves
//	greeting.go           greeting ↔ arguments of a container
//	conditions.go         how a condition is set
//	errors.go             the classes of errors; what of them is retried is decided beside Reconcile
//	messages.go           how texts are shortened and made alike
package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// fieldOwner is the name under which the API server records the fields that this controller owns.
const fieldOwner = "lolcow-controller"

// The first retry of a port conflict, and the longest time between two. The API server frees a port a
// little after it has announced that the Service is gone, so the event alone is not enough.
const (
	firstPortRetry   = 100 * time.Millisecond
	longestPortRetry = 5 * time.Second
)

// LolcowReconciler keeps the dependents of Lolcows as their specs describe them, and reports what it observes.
type LolcowReconciler struct {
	client.Client
	recorder events.EventRecorder
	clock    clock.PassiveClock

	// defaultImage is the image of Lolcows whose spec names none.
	defaultImage string

	// portRetries is the back-off of the attempts to get a port that another Service holds.
	portRetries workqueue.TypedRateLimiter[reconcile.Request]
	// retries delays the attempts that fail for any other reason.
	retries *retries
}

// NewLolcowReconciler returns a reconciler that reads and writes through c.
func NewLolcowReconciler(c client.Client, recorder events.EventRecorder, clock clock.PassiveClock, defaultImage string) *LolcowReconciler {
	return &LolcowReconciler{
		Client:       c,
		recorder:     recorder,
		clock:        clock,
		defaultImage: defaultImage,
		portRetries:  workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstPortRetry, longestPortRetry),
		retries:      newRetries(newRateLimiter()),
	}
}

// Reads come from the cache, which uses list and watch, so no resource needs get. A server-side apply uses the verb patch,
// and also create if the object does not exist yet. Two permissions are only for the admission plugin
// OwnerReferencesPermissionEnforcement: update of lolcows/finalizers, because the operator sets blockOwnerDeletion in owner
// references, and delete, because it corrects owner references. The operator deletes no Deployment and no Service.
//
// +kubebuilder:rbac:groups=my.domain,resources=lolcows,verbs=list;watch
// +kubebuilder:rbac:groups=my.domain,resources=lolcows/status,verbs=patch
// +kubebuilder:rbac:groups=my.domain,resources=lolcows/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile compares the actual state of one Lolcow with its spec and corrects what differs. It does the same whatever
// triggered it, and it may be called at any time and any number of times.
func (r *LolcowReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	// 1. Fetch.
	var lolcow v1alpha1.Lolcow
	err := r.Get(ctx, req.NamespacedName, &lolcow)
	if apierrors.IsNotFound(err) {
		r.portRetries.Forget(req)
		r.retries.forget(req)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}

	// 2. Finalize. There is nothing to do: the garbage collector deletes what a deleted Lolcow owns.
	if !lolcow.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}

	// 3. Ensure the dependents, and 4. observe the rest. Errors are reported in the status too, except a stale one: it means
	// that the cache is out of date, and so would be the status. A stale error that lasts is reported.
	observed := observation{now: r.clock.Now()}
	actCtx, cancel := untilReport(ctx)
	defer cancel()
	wait, err := r.tryDependents(actCtx, req, &lolcow, &observed)
	err = r.retries.reportable(req, observed.now, errors.Join(err, r.observePods(ctx, &lolcow, &observed)))
	if isStale(err) {
		return ctrl.Result{}, err
	}
	if errors.Is(err, errNamespaceTerminating) {
		return ctrl.Result{}, nil
	}
	observed.failure = failureOf(err)

	// 5. Report.
	if reportErr := r.report(ctx, &lolcow, observed); reportErr != nil {
		return ctrl.Result{}, errors.Join(err, reportErr)
	}

	// 6. Requeue, if something will change without an event.
	if wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	return requeue(r.wait(req, &observed, err), retryable(err))
}

// tryDependents ensures the dependents, if a try is due. If not, it reads them only, and returns how long the next try has
// to wait, and why the last one failed. A try is due at once for another spec, and where what the last one left has changed.
// They are read before anything is tried: a request that uses up all the time must not hide what is there.
func (r *LolcowReconciler) tryDependents(ctx context.Context, req ctrl.Request, lolcow *v1alpha1.Lolcow, observed *observation) (time.Duration, error) {
	if err := r.readDependents(ctx, lolcow, observed); err != nil {
		return 0, err
	}
	last, wait := r.retries.lastFailure(req, lolcow, r.clock.Now())
	if wait > 0 && apiequality.Semantic.DeepEqual(dependentsOf(observed), last.left) {
		return wait, last.err
	}
	err := r.ensureDependents(ctx, lolcow, observed)
	if isStale(err) {
		return 0, err
	}
	if retryable(err) == nil {
		r.retries.forget(req)
	} else {
		r.retries.recordFailure(req, lolcow, r.clock.Now(), dependentsOf(observed), err)
	}
	return 0, err
}

// readDependents reads what the cache has of the dependents. One that cannot be read, because the cache does not catch up with
// what was written, may be there.
func (r *LolcowReconciler) readDependents(ctx context.Context, lolcow *v1alpha1.Lolcow, observed *observation) error {
	deployment, service := &appsv1.Deployment{}, &corev1.Service{}
	for _, dependent := range []client.Object{deployment, service} {
		named, err := describe(r.Client, dependent, lolcow.Name)
		if err != nil {
			return err
		}
		if err := r.Get(ctx, client.ObjectKeyFromObject(lolcow), dependent); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading %s: %w: %w", named, errStale, err)
		}
	}
	if metav1.IsControlledBy(deployment, lolcow) {
		observed.deployment = deployment
	}
	if metav1.IsControlledBy(service, lolcow) {
		observed.service = service
	}
	return nil
}

// ensureDependents applies the Deployment and the Service: both, even if the first is rejected. What was read of them stays
// observed where there is nothing newer.
func (r *LolcowReconciler) ensureDependents(ctx context.Context, lolcow *v1alpha1.Lolcow, observed *observation) error {
	deployment, deploymentErr := applyDependent(ctx, r.Client, fieldOwner, lolcow,
		&appsv1.Deployment{}, desiredDeployment(lolcow, r.defaultImage), appsv1ac.ExtractDeployment, rekeyContainerPort)
	service, serviceErr := applyDependent(ctx, r.Client, fieldOwner, lolcow,
		&corev1.Service{}, desiredService(lolcow), corev1ac.ExtractService, rekeyServicePort)
	observed.deployment, observed.service = cmp.Or(deployment, observed.deployment), cmp.Or(service, observed.service)
	return errors.Join(deploymentErr, asPortConflict(serviceErr))
}

// observePods lists the Lolcow's pods while its Deployment is not rolled out. They matter only to say why.
func (r *LolcowReconciler) observePods(ctx context.Context, lolcow *v1alpha1.Lolcow, observed *observation) error {
	if observed.deployment == nil || rolledOut(observed.deployment) {
		return nil
	}
	var pods corev1.PodList
	if err := r.List(ctx, &pods, client.InNamespace(lolcow.Namespace), client.MatchingLabels(selectorLabels(lolcow))); err != nil {
		return fmt.Errorf("listing Pods of Lolcow %s: %w", lolcow.Name, err)
	}
	observed.pods = pods.Items
	return nil
}

// report writes the status if it changed, and then announces what is new in it.
func (r *LolcowReconciler) report(ctx context.Context, lolcow *v1alpha1.Lolcow, observed observation) error {
	status := desiredStatus(lolcow, observed)
	if apiequality.Semantic.DeepEqual(status, lolcow.Status) {
		ctrl.LoggerFrom(ctx).V(1).Info("Nothing to change", "greeting", status.Greeting, "port", status.Port)
		return nil
	}
	before := lolcow.DeepCopy()
	lolcow.Status = status
	if err := writeStatus(ctx, r.Client, before, lolcow, fieldOwner); err != nil {
		return err
	}
	announce(ctx, r.recorder, lolcow, transitions(before.Status, status))
	return nil
}

// wait is the time until the next reconciliation; 0 if an event will trigger it. The deletion of the object that has our
// name is one; so is that of a Service that holds our port, but see firstPortRetry. If nothing failed, time alone may end a
// crash loop.
func (r *LolcowReconciler) wait(req ctrl.Request, observed *observation, err error) time.Duration {
	if retryable(err) != nil {
		return 0
	}
	if hasReason(err, v1alpha1.ReasonPortConflict) {
		return r.portRetries.When(req)
	}
	r.portRetries.Forget(req)
	return untilSteady(observed.pods, observed.now)
}

// retryable returns the part of an error that the queue retries: all but conflicts of names and of ports.
func retryable(err error) error {
	err = without(err, v1alpha1.ReasonNameConflict)
	err = without(err, v1alpha1.ReasonPortConflict)
	return err
}
