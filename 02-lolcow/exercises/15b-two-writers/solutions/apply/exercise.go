package twowriters

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// New returns the two controllers.
func New(c client.Client) (greeter, scaler reconcile.Reconciler) {
	return &greeting{c}, &scaling{c}
}

type greeting struct{ client client.Client }

// Reconcile creates the Deployment of a Lolcow, and keeps its greeting.
func (r *greeting) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var lolcow v1alpha1.Lolcow
	if err := r.client.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	// Built anew each time, and without replicas: those are not the greeter's.
	labels := map[string]string{"lolcow": lolcow.Name}
	desired := appsv1ac.Deployment(lolcow.Name, lolcow.Namespace).
		WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion(v1alpha1.SchemeGroupVersion.String()).WithKind("Lolcow").
			WithName(lolcow.Name).WithUID(lolcow.UID).WithController(true)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(labels).
				WithSpec(corev1ac.PodSpec().WithContainers(corev1ac.Container().
					WithName("lolcow").WithImage("lolcow").WithArgs("--", lolcow.Spec.Greeting)))))
	return reconcile.Result{}, r.client.Apply(ctx, desired, client.FieldOwner("greeter"), client.ForceOwnership)
}

type scaling struct{ client client.Client }

// Reconcile keeps the number of replicas.
func (r *scaling) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var lolcow v1alpha1.Lolcow
	if err := r.client.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var deployment appsv1.Deployment
	if err := r.client.Get(ctx, req.NamespacedName, &deployment); err != nil {
		// The greeter has not created it yet.
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	desired := appsv1ac.Deployment(deployment.Name, deployment.Namespace).
		WithSpec(appsv1ac.DeploymentSpec().WithReplicas(*lolcow.Spec.Replicas))
	return reconcile.Result{}, r.client.Apply(ctx, desired, client.FieldOwner("scaler"), client.ForceOwnership)
}
