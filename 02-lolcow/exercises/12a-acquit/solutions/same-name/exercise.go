package acquit

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// +kubebuilder:rbac:groups=my.domain,resources=lolcows,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=my.domain,resources=lolcows/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=my.domain,resources=lolcows/finalizers,verbs=update

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Lolcow{}).
		WithOptions(options).
		Complete(&reconciler{client: mgr.GetClient()})
}

type reconciler struct{ client client.Client }

// Reconcile creates what a Lolcow needs, and keeps the greeting of its Deployment.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var lolcow v1alpha1.Lolcow
	if err := r.client.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}

	var deployment appsv1.Deployment
	err := r.client.Get(ctx, req.NamespacedName, &deployment)
	switch {
	case apierrors.IsNotFound(err):
		if err := r.create(ctx, &lolcow, newDeployment(&lolcow)); err != nil {
			return reconcile.Result{}, err
		}
	case err != nil:
		return reconcile.Result{}, err
	case deployment.Spec.Template.Spec.Containers[0].Args[1] != lolcow.Spec.Greeting:
		deployment.Spec.Template.Spec.Containers[0].Args[1] = lolcow.Spec.Greeting
		if err := r.client.Update(ctx, &deployment); err != nil {
			return reconcile.Result{}, err
		}
	}

	var service corev1.Service
	err = r.client.Get(ctx, req.NamespacedName, &service)
	if apierrors.IsNotFound(err) {
		err = r.create(ctx, &lolcow, newService(&lolcow))
	}
	return reconcile.Result{}, err
}

// create creates a dependent, which the Lolcow controls.
func (r *reconciler) create(ctx context.Context, lolcow *v1alpha1.Lolcow, dependent client.Object) error {
	if err := controllerutil.SetControllerReference(lolcow, dependent, r.client.Scheme()); err != nil {
		return err
	}
	return r.client.Create(ctx, dependent)
}

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

func newService(lolcow *v1alpha1.Lolcow) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: lolcow.Name, Namespace: lolcow.Namespace},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"lolcow": lolcow.Name},
			Ports:    []corev1.ServicePort{{Port: 80}},
		},
	}
}
