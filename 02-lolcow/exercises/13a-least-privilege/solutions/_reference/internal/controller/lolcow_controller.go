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
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/my-lolcow/api/v1alpha1"
)

// portRetry is how long a port that another Service has is left alone. No event tells that it is free.
const portRetry = 5 * time.Second

// LolcowReconciler reconciles a Lolcow object
type LolcowReconciler struct {
	client.Client
	Scheme *runtime.Scheme
}

// Reads come from the cache, which lists and watches: there is no get.
//
// +kubebuilder:rbac:groups=my.domain,resources=lolcows,verbs=list;watch
// +kubebuilder:rbac:groups=my.domain,resources=lolcows/status,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;create;update
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create;update

// Reconcile brings the Deployment and the Service of one Lolcow to what its spec describes, and reports how they are. It does
// the same whatever has changed.
func (r *LolcowReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var lolcow v1alpha1.Lolcow
	if err := r.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	meta := metav1.ObjectMeta{Name: lolcow.Name, Namespace: lolcow.Namespace}
	deployment := &appsv1.Deployment{ObjectMeta: meta}
	_, deploymentErr := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		desiredDeployment(&lolcow, deployment)
		return nil
	})
	service := &corev1.Service{ObjectMeta: meta}
	_, serviceErr := controllerutil.CreateOrUpdate(ctx, r.Client, service, func() error {
		desiredService(&lolcow, service)
		return nil
	})
	// The port is taken: there is nothing to do but to try again later.
	taken := portConflict(serviceErr)
	failed := errors.Join(deploymentErr, serviceErr)
	if err := r.report(ctx, &lolcow, deployment, failed); err != nil {
		return ctrl.Result{}, errors.Join(failed, err)
	}
	if taken && deploymentErr == nil {
		return ctrl.Result{RequeueAfter: portRetry}, nil
	}
	return ctrl.Result{}, failed
}

// report writes the status, once and only if it has changed. The lock is there because a merge patch replaces whole lists:
// without it, a condition that another controller has added meanwhile would be lost.
func (r *LolcowReconciler) report(ctx context.Context, lolcow *v1alpha1.Lolcow, deployment *appsv1.Deployment, failed error) error {
	before := lolcow.DeepCopy()
	setStatus(lolcow, deployment, failed)
	if equality.Semantic.DeepEqual(before.Status, lolcow.Status) {
		return nil
	}
	return r.Status().Patch(ctx, lolcow, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// SetupWithManager sets up the controller with the Manager.
func (r *LolcowReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Lolcow{}).
		Named("lolcow").
		Complete(r)
}
