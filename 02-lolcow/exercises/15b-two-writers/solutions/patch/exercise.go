package twowriters

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
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
	var deployment appsv1.Deployment
	err := r.client.Get(ctx, req.NamespacedName, &deployment)
	if apierrors.IsNotFound(err) {
		created := newDeployment(&lolcow)
		if err := controllerutil.SetControllerReference(&lolcow, created, r.client.Scheme()); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, r.client.Create(ctx, created)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	before := deployment.DeepCopy()
	for i := range deployment.Spec.Template.Spec.Containers {
		if container := &deployment.Spec.Template.Spec.Containers[i]; container.Name == "lolcow" {
			container.Args = []string{"--", lolcow.Spec.Greeting}
		}
	}
	// The difference, without the resourceVersion. Containers are merged by their names.
	return reconcile.Result{}, r.client.Patch(ctx, &deployment, client.StrategicMergeFrom(before))
}

// newDeployment is what the greeter creates.
func newDeployment(lolcow *v1alpha1.Lolcow) *appsv1.Deployment {
	labels := map[string]string{"lolcow": lolcow.Name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: lolcow.Name, Namespace: lolcow.Namespace},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "lolcow", Image: "lolcow", Args: []string{"--", lolcow.Spec.Greeting},
				}}},
			},
		},
	}
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
	before := deployment.DeepCopy()
	deployment.Spec.Replicas = lolcow.Spec.Replicas
	return reconcile.Result{}, r.client.Patch(ctx, &deployment, client.StrategicMergeFrom(before))
}
