package lab

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// The names of the reconcilers that tests of 23b are run with.
const (
	// Numbers and NoOldPods are right: all replicas are updated and available, and no Pod of before is left, which might be one of
	// those that are available.
	Numbers   = "numbers"
	NoOldPods = "no-old-pods"
	// AtOnce is Ready as soon as there is a Deployment.
	AtOnce = "at-once"
	// AnyGeneration believes numbers that are about the Deployment before its last change.
	AnyGeneration = "any-generation"
	// AnyPods counts Pods of before the last change.
	AnyPods = "any-pods"
	// Never is never Ready.
	Never = "never"
)

// rollouts are the ways in which they decide whether a Deployment serves what its spec asks for.
var rollouts = map[string]func(d *appsv1.Deployment) bool{
	// As kubectl rollout status does.
	Numbers: func(d *appsv1.Deployment) bool {
		return observed(d) && d.Status.UpdatedReplicas >= *d.Spec.Replicas && d.Status.Replicas <= d.Status.UpdatedReplicas &&
			d.Status.AvailableReplicas >= d.Status.UpdatedReplicas
	},
	NoOldPods: func(d *appsv1.Deployment) bool {
		return observed(d) && d.Status.Replicas == *d.Spec.Replicas && d.Status.UpdatedReplicas == d.Status.Replicas &&
			d.Status.AvailableReplicas == d.Status.Replicas
	},
	AtOnce: func(*appsv1.Deployment) bool { return true },
	AnyGeneration: func(d *appsv1.Deployment) bool {
		return d.Status.UpdatedReplicas == *d.Spec.Replicas && d.Status.AvailableReplicas == *d.Spec.Replicas
	},
	AnyPods: func(d *appsv1.Deployment) bool { return observed(d) && d.Status.AvailableReplicas == *d.Spec.Replicas },
	Never:   func(d *appsv1.Deployment) bool { return d.Status.ObservedGeneration > d.Generation },
}

func observed(d *appsv1.Deployment) bool { return d.Status.ObservedGeneration >= d.Generation }

// Right is a reconciler whose condition Ready is right.
func Right(c client.Client) reconcile.Reconciler { return &deployer{c, rollouts[Numbers]} }

// deployer keeps a Deployment for each Lolcow, and the condition Ready.
type deployer struct {
	client client.Client
	ready  func(d *appsv1.Deployment) bool
}

// Reconcile makes the Deployment what the Lolcow asks for, and writes the status.
func (r *deployer) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var lolcow v1alpha1.Lolcow
	if err := r.client.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: lolcow.Name, Namespace: lolcow.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.client, deployment, func() error {
		labels := map[string]string{"lolcow": lolcow.Name}
		deployment.Spec.Replicas = lolcow.Spec.Replicas
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		deployment.Spec.Template.Labels = labels
		deployment.Spec.Template.Spec.Containers = []corev1.Container{{
			Name: "lolcow", Image: "lolcow", Args: []string{"--", lolcow.Spec.Greeting},
		}}
		return controllerutil.SetControllerReference(&lolcow, deployment, r.client.Scheme())
	})
	if err != nil {
		return reconcile.Result{}, err
	}
	condition := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRollingOut, ObservedGeneration: lolcow.Generation,
	}
	if r.ready(deployment) {
		condition.Status, condition.Reason = metav1.ConditionTrue, v1alpha1.ReasonServing
	}
	apimeta.SetStatusCondition(&lolcow.Status.Conditions, condition)
	return reconcile.Result{}, r.client.Status().Update(ctx, &lolcow)
}
