/*
Copyright 2026.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package controller

import (
	"context"
	"errors"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"example.com/my-lolcow/api/v1alpha1"
)

// portRetry is how long a port that another Service has is left alone. No event tells that it is free.
const portRetry = 5 * time.Second

// LolcowReconciler reconciles a Lolcow object
type LolcowReconciler struct {
	client.Client
	Scheme *runtime.Scheme
	// Recorder sends Events. If it is nil, SetupWithManager takes that of the manager.
	Recorder events.EventRecorder
	// DNS is the URL of the DNS service. If it is empty, SetupWithManager takes that of the environment variable DNS_URL.
	DNS string
	// Now is the clock. If it is nil, SetupWithManager takes time.Now.
	Now func() time.Time
}

// Reads come from the cache, which lists and watches: there is no get. An apply is a patch, and a create where the object is
// not there yet. The admission plugin OwnerReferencesPermissionEnforcement wants two permissions that no request shows: to
// update the finalizers of a Lolcow, for blockOwnerDeletion in an owner reference, and to delete an object whose owner
// references are changed.
//
// +kubebuilder:rbac:groups=my.domain,resources=lolcows,verbs=list;watch;update
// +kubebuilder:rbac:groups=my.domain,resources=lolcows/status,verbs=patch
// +kubebuilder:rbac:groups=my.domain,resources=lolcows/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile brings the Deployment, the Service and the DNS record of one Lolcow to what its spec describes, and reports how they
// are. It does the same whatever has changed.
func (r *LolcowReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var lolcow v1alpha1.Lolcow
	if err := r.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !lolcow.DeletionTimestamp.IsZero() {
		// Nothing else is written: in foreground deletion, the garbage collector waits for the end of the dependents.
		err := r.deleteRecord(ctx, &lolcow, r.Now().After(lolcow.DeletionTimestamp.Add(recordPatience)))
		if errors.Is(err, errDNS) {
			return ctrl.Result{RequeueAfter: recordRetry}, nil
		}
		return ctrl.Result{}, err
	}
	deployment, service := &appsv1.Deployment{}, &corev1.Service{}
	greeting, deploymentErr := r.greetingOf(ctx, &lolcow)
	if deploymentErr == nil {
		// Without a greeting the Deployment stays as it is: its pods serve the last one.
		deploymentErr = ensure(ctx, r.Client, &lolcow, deployment, desiredDeployment(&lolcow, greeting), appsv1ac.ExtractDeployment)
	}
	serviceErr := ensure(ctx, r.Client, &lolcow, service, desiredService(&lolcow), corev1ac.ExtractService)
	recordErr := r.ensureRecord(ctx, &lolcow)
	failed := errors.Join(deploymentErr, serviceErr, recordErr)
	if stale(deploymentErr) || stale(serviceErr) || stale(recordErr) {
		// Nothing is reported: it would be computed from what is out of date. The next reconciliation reads again.
		return ctrl.Result{}, failed
	}
	if err := r.report(ctx, &lolcow, deployment, failed); err != nil {
		return ctrl.Result{}, errors.Join(failed, err)
	}
	if errors.Is(deploymentErr, errNoGreeting) {
		// The ConfigMap will trigger a reconciliation when it has the greeting: nothing is tried again.
		deploymentErr = nil
	}
	if portConflict(serviceErr) && deploymentErr == nil && recordErr == nil {
		// The port is taken: there is nothing to do but to try again later.
		return ctrl.Result{RequeueAfter: portRetry}, nil
	}
	// No event tells when a quota is gone, or a webhook works again: what failed is returned, and the queue tries again.
	return ctrl.Result{}, errors.Join(deploymentErr, serviceErr, recordErr)
}

// report writes the status, once and only if it has changed, and then announces what is new in it. The lock is there because
// a merge patch replaces whole lists: without it, a condition that another controller has added meanwhile would be lost.
func (r *LolcowReconciler) report(ctx context.Context, lolcow *v1alpha1.Lolcow, deployment *appsv1.Deployment, failed error) error {
	before := lolcow.DeepCopy()
	setStatus(lolcow, deployment, failed)
	if equality.Semantic.DeepEqual(before.Status, lolcow.Status) {
		return nil
	}
	if err := r.Status().Patch(ctx, lolcow, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	r.announce(before, lolcow)
	return nil
}

// announce sends an Event if the condition Ready has another reason than before. What was announced is known from the status,
// also after a restart. A rollout is part of every change that a user makes:
// it needs no Event.
func (r *LolcowReconciler) announce(before, after *v1alpha1.Lolcow) {
	was, is := readyOf(before), readyOf(after)
	if is.Reason == was.Reason || is.Reason == "RollingOut" {
		return
	}
	eventType := corev1.EventTypeWarning
	if is.Status == metav1.ConditionTrue || is.Reason == "ScaledToZero" {
		eventType = corev1.EventTypeNormal
	}
	r.Recorder.Eventf(after, nil, eventType, is.Reason, "Reconcile", "%s", is.Message)
}

// SetupWithManager sets up the controller with the Manager.
func (r *LolcowReconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Recorder == nil {
		r.Recorder = mgr.GetEventRecorder("lolcow-controller")
	}
	if r.DNS == "" {
		r.DNS = os.Getenv("DNS_URL")
	}
	if r.Now == nil {
		r.Now = time.Now
	}
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.Lolcow{}, configMapIndex, indexConfigMap)
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Lolcow{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.lolcowsOf)).
		Named("lolcow").
		Complete(r)
}
