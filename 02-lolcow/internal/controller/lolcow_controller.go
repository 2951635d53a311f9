// Package controller makes the world as a Lolcow's spec wants it: one Deployment and one Service.
package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// The first retry of a port conflict, and the longest time between two. The API server frees a port a
// little after it has announced that the Service is gone, so a wake-up alone is not enough.
const (
	firstPortRetry   = 100 * time.Millisecond
	longestPortRetry = 5 * time.Second
)

// LolcowReconciler brings the children of Lolcows in line with their specs and reports what it sees.
type LolcowReconciler struct {
	client.Client
	Recorder events.EventRecorder
	Clock    clock.PassiveClock

	// DefaultImage is the image of Lolcows whose spec names none.
	DefaultImage string

	// PortRetries paces the attempts to get a port that another Service holds.
	PortRetries *flowcontrol.Backoff
}

// NewLolcowReconciler returns a reconciler that reads and writes through c.
func NewLolcowReconciler(c client.Client, recorder events.EventRecorder, defaultImage string) *LolcowReconciler {
	return &LolcowReconciler{
		Client:       c,
		Recorder:     recorder,
		Clock:        clock.RealClock{},
		DefaultImage: defaultImage,
		PortRetries:  flowcontrol.NewBackOff(firstPortRetry, longestPortRetry),
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

// Reconcile makes one pass over one Lolcow: it does the same whatever woke it, and it may be called at
// any time and any number of times.
func (r *LolcowReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	// 1. Load. Deleted or on its way: the garbage collector removes what it owns.
	var lolcow v1alpha1.Lolcow
	if err := r.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		r.PortRetries.DeleteEntry(req.String())
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !lolcow.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}

	// 2. Act: both children, even if the first is refused. A refusal is reported; any other error
	// (a time-out, a conflict, no connection) ends the pass, and the queue tries again.
	seen, err := r.applyChildren(ctx, &lolcow)
	if err != nil {
		return ctrl.Result{}, err
	}

	// 3. Observe the rest, and report.
	if seen.pods, err = r.podsOf(ctx, &lolcow, seen.deployment); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.report(ctx, &lolcow, seen); err != nil {
		return ctrl.Result{}, err
	}

	// 4. Come back for what no event will announce.
	return r.retry(req, seen.refused)
}

// applyChildren applies the Deployment and the Service, both at once, as neither needs the other, and
// returns what they are now and the first refusal.
func (r *LolcowReconciler) applyChildren(ctx context.Context, lolcow *v1alpha1.Lolcow) (facts, error) {
	var seen facts
	var deploymentErr, serviceErr error
	var both sync.WaitGroup
	both.Go(func() {
		seen.deployment, deploymentErr = applyChild(ctx, r, lolcow,
			&appsv1.Deployment{}, desiredDeployment(lolcow, r.DefaultImage), appsv1ac.ExtractDeployment)
	})
	both.Go(func() {
		seen.service, serviceErr = applyChild(ctx, r, lolcow,
			&corev1.Service{}, desiredService(lolcow), corev1ac.ExtractService)
	})
	both.Wait()
	var err error
	seen.refused, err = splitRefusals(errors.Join(deploymentErr, serviceErr))
	return seen, err
}

// podsOf lists the Lolcow's pods while its Deployment is not rolled out. They matter only to say why.
func (r *LolcowReconciler) podsOf(ctx context.Context, lolcow *v1alpha1.Lolcow, deployment *appsv1.Deployment) ([]corev1.Pod, error) {
	if deployment == nil || rolledOut(deployment) {
		return nil, nil
	}
	var pods corev1.PodList
	if err := r.List(ctx, &pods, client.InNamespace(lolcow.Namespace), client.MatchingLabels(selectorLabels(lolcow))); err != nil {
		return nil, fmt.Errorf("listing Pods of Lolcow %s: %w", lolcow.Name, err)
	}
	return pods.Items, nil
}

// report writes the status if it changed, and then, on a transition, one Event. Rolling out is part of
// every change that a user makes and has just asked for, so it is a condition but not an Event.
func (r *LolcowReconciler) report(ctx context.Context, lolcow *v1alpha1.Lolcow, seen facts) error {
	status := desiredStatus(lolcow, seen, metav1.NewTime(r.Clock.Now()))
	if apiequality.Semantic.DeepEqual(status, lolcow.Status) {
		ctrl.LoggerFrom(ctx).V(1).Info("Nothing to change", "greeting", status.Greeting, "port", status.Port)
		return nil
	}
	// The lock is there because a merge patch replaces the whole list of conditions.
	before := lolcow.DeepCopy()
	lolcow.Status = status
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Status().Patch(ctx, lolcow, patch, client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("writing status of Lolcow %s: %w", lolcow.Name, err)
	}
	r.announce(ctx, lolcow, before)
	return nil
}

// announce tells of a transition of the condition Ready: in the log, and to users in one Event.
func (r *LolcowReconciler) announce(ctx context.Context, lolcow, before *v1alpha1.Lolcow) {
	was, is := readyOf(before), readyOf(lolcow)
	if was.Status == is.Status && was.Reason == is.Reason {
		return
	}
	ctrl.LoggerFrom(ctx).Info("Ready changed", "status", is.Status, "reason", is.Reason, "message", is.Message)
	note := shorten(is.Message, longestNote)
	switch is.Reason {
	case v1alpha1.ReasonRollingOut:
	case v1alpha1.ReasonServing, v1alpha1.ReasonScaledToZero:
		r.Recorder.Eventf(lolcow, nil, corev1.EventTypeNormal, is.Reason, "Reconcile", "%s", note)
	default:
		r.Recorder.Eventf(lolcow, nil, corev1.EventTypeWarning, is.Reason, "Reconcile", "%s", note)
	}
}

// longestNote is what the API server takes of the text of an Event, in bytes. An Event with more is lost.
const longestNote = 1024

// shorten cuts a text to so many bytes, between two characters.
func shorten(text string, limit int) string {
	const more = "…"
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(more)], "") + more
}

// retry decides when to come back. A foreign object's deletion is an event; so is a freed port, but see
// firstPortRetry. Everything else that was refused is tried again at the queue's own pace.
func (r *LolcowReconciler) retry(req ctrl.Request, refused *refusedError) (ctrl.Result, error) {
	if refused == nil || refused.reason != v1alpha1.ReasonPortConflict {
		r.PortRetries.DeleteEntry(req.String())
	}
	switch {
	case refused == nil || refused.reason == v1alpha1.ReasonNameConflict:
		return ctrl.Result{}, nil
	case refused.reason == v1alpha1.ReasonPortConflict:
		r.PortRetries.Next(req.String(), r.Clock.Now())
		return ctrl.Result{RequeueAfter: r.PortRetries.Get(req.String())}, nil
	default:
		return ctrl.Result{}, refused
	}
}
