//go:build start

package quiet

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Lolcow{}).
		Owns(&appsv1.Deployment{}).
		WithOptions(options).
		Complete(&reconciler{client: mgr.GetClient()})
}

type reconciler struct{ client client.Client }

// Reconcile keeps a Deployment for a Lolcow, and says in the status whether it is available.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var lolcow v1alpha1.Lolcow
	if err := r.client.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: lolcow.Name, Namespace: lolcow.Namespace}}
	// It writes only if the function changes something.
	_, err := controllerutil.CreateOrUpdate(ctx, r.client, deployment, func() error {
		labels := map[string]string{"lolcow": lolcow.Name}
		deployment.Spec.Replicas = lolcow.Spec.Replicas
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		deployment.Spec.Template.Labels = labels
		if len(deployment.Spec.Template.Spec.Containers) == 0 {
			deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "lolcow", Image: "lolcow"}}
		}
		deployment.Spec.Template.Spec.Containers[0].Args = []string{"--", lolcow.Spec.Greeting}
		return controllerutil.SetControllerReference(&lolcow, deployment, r.client.Scheme())
	})
	if err != nil {
		return reconcile.Result{}, err
	}
	// TODO: it never reaches a steady state.
	apimeta.SetStatusCondition(&lolcow.Status.Conditions, ready(deployment))
	return reconcile.Result{RequeueAfter: 10 * time.Second}, r.client.Status().Update(ctx, &lolcow)
}

// ready says whether all replicas of the Deployment are available.
func ready(deployment *appsv1.Deployment) metav1.Condition {
	seen := deployment.Status
	condition := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRollingOut,
		Message: fmt.Sprintf("%d replicas are available at %s", seen.AvailableReplicas, time.Now()),
	}
	if seen.ObservedGeneration >= deployment.Generation && seen.AvailableReplicas == *deployment.Spec.Replicas {
		condition.Status, condition.Reason = metav1.ConditionTrue, v1alpha1.ReasonServing
	}
	return condition
}
