// Package controller brings the cluster to the state that the spec of a Lolcow describes: one Deployment and one Service.
//
// Its files in the order of reading. A function calls functions of its own file and of later ones only:
//
//	lolcow_controller.go  Reconcile, step by step
//	watches.go            what triggers a reconciliation, and what the cache holds
//	apply.go              how a dependent is written
//	report.go             how the status and Events are written
//	resources.go          spec → desired dependents
//	status.go             what was observed → conditions
//	pods.go               what pods say of themselves
//	greeting.go           greeting ↔ arguments of a container
//	conditions.go         how a condition is set
//	errors.go             the classes of errors
//	messages.go           texts of conditions and Events
package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
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

	// portRetries paces the attempts to get a port that another Service holds.
	portRetries workqueue.TypedRateLimiter[reconcile.Request]
}

// NewLolcowReconciler returns a reconciler that reads and writes through c.
func NewLolcowReconciler(c client.Client, recorder events.EventRecorder, clock clock.PassiveClock, defaultImage string) *LolcowReconciler {
	return &LolcowReconciler{
		Client:       c,
		recorder:     recorder,
		clock:        clock,
		defaultImage: defaultImage,
		portRetries:  workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstPortRetry, longestPortRetry),
	}
}

// Reads come from the cache, which lists and watches, so there is no get. Server-side apply is patch, and
// create where the object is not there yet. The finalizers are for blockOwnerDeletion in an owner
// reference, which the admission plugin OwnerReferencesPermissionEnforcement allows to no one else.
//
// +kubebuilder:rbac:groups=my.domain,resources=lolcows,verbs=list;watch
// +kubebuilder:rbac:groups=my.domain,resources=lolcows/status,verbs=patch
// +kubebuilder:rbac:groups=my.domain,resources=lolcows/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile compares the actual state of one Lolcow with its spec and corrects what differs. It does the same whatever
// triggered it, and it may be called at any time and any number of times.
func (r *LolcowReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	// 1. Fetch.
	var lolcow v1alpha1.Lolcow
	if err := r.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		r.portRetries.Forget(req)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}

	// 2. Finalize. There is nothing to do: the garbage collector deletes what a deleted Lolcow owns.
	if !lolcow.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}

	// 3. Ensure the dependents, and 4. observe the rest. What fails is reported too, unless what was read is stale: then
	// the queue tries again.
	var observed observation
	err := errors.Join(r.ensureDependents(ctx, &lolcow, &observed), r.observePods(ctx, &lolcow, &observed))
	if isStale(err) {
		return ctrl.Result{}, err
	}
	observed.failure = failureOf(err)

	// 5. Report.
	if reportErr := r.report(ctx, &lolcow, observed); reportErr != nil {
		return ctrl.Result{}, errors.Join(err, reportErr)
	}

	// 6. Requeue for what no event will announce.
	return r.requeue(req, err)
}

// ensureDependents applies the Deployment and the Service: both, even if the first is rejected.
func (r *LolcowReconciler) ensureDependents(ctx context.Context, lolcow *v1alpha1.Lolcow, observed *observation) error {
	var deploymentErr, serviceErr error
	observed.deployment, deploymentErr = applyDependent(ctx, r.Client, fieldOwner, lolcow,
		&appsv1.Deployment{}, desiredDeployment(lolcow, r.defaultImage), appsv1ac.ExtractDeployment)
	observed.service, serviceErr = applyDependent(ctx, r.Client, fieldOwner, lolcow,
		&corev1.Service{}, desiredService(lolcow), corev1ac.ExtractService)
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
	status := desiredStatus(lolcow, observed, metav1.NewTime(r.clock.Now()))
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

// requeue decides when to try again. The deletion of the object that has our name is an event; so is that of a Service
// that holds our port, but see firstPortRetry. All else that failed is retried at the queue's own pace.
func (r *LolcowReconciler) requeue(req ctrl.Request, err error) (ctrl.Result, error) {
	_, err = without(err, v1alpha1.ReasonNameConflict)
	portConflict, err := without(err, v1alpha1.ReasonPortConflict)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case portConflict:
		return ctrl.Result{RequeueAfter: r.portRetries.When(req)}, nil
	}
	r.portRetries.Forget(req)
	return ctrl.Result{}, nil
}
