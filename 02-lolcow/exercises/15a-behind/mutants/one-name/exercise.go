package behind

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// New returns a reconciler. The reads of c are from a cache, and those of apiReader from the API server.
func New(c client.Client, _ client.Reader) reconcile.Reconciler {
	return &reconciler{client: c}
}

type reconciler struct{ client client.Client }

// Reconcile keeps one ConfigMap with the greeting of a Lolcow.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var lolcow v1alpha1.Lolcow
	if err := r.client.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var card corev1.ConfigMap
	key := client.ObjectKey{Namespace: lolcow.Namespace, Name: "lolcow-card"}
	if err := r.client.Get(ctx, key, &card); !apierrors.IsNotFound(err) {
		return reconcile.Result{}, err
	}
	card = corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: lolcow.Namespace},
		Data:       map[string]string{"greeting": lolcow.Spec.Greeting},
	}
	if err := controllerutil.SetControllerReference(&lolcow, &card, r.client.Scheme()); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.client.Create(ctx, &card); err != nil && !apierrors.IsAlreadyExists(err) {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, nil
}
