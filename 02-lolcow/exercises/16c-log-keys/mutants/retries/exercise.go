package logkeys

import (
	"context"

	corev1 "k8s.io/api/core/v1"
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
		WithOptions(options).
		Complete(&reconciler{client: mgr.GetClient()})
}

type reconciler struct{ client client.Client }

// Reconcile keeps the greeting of a Lolcow as the label of a ConfigMap.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	log := ctrl.LoggerFrom(ctx)
	var lolcow v1alpha1.Lolcow
	if err := r.client.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	card := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: lolcow.Name, Namespace: lolcow.Namespace}}
	var previous string
	result, err := controllerutil.CreateOrUpdate(ctx, r.client, card, func() error {
		previous = card.Labels["greeting"]
		metav1.SetMetaDataLabel(&card.ObjectMeta, "greeting", lolcow.Spec.Greeting)
		return controllerutil.SetControllerReference(&lolcow, card, r.client.Scheme())
	})
	if err != nil {
		return reconcile.Result{}, err
	}
	if result != controllerutil.OperationResultNone {
		log.Info("Greeting written", "greeting", lolcow.Spec.Greeting, "previous", previous)
	}
	return reconcile.Result{}, nil
}
