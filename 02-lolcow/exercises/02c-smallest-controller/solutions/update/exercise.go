package smallest

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&corev1.Namespace{}).
		Complete(&reconciler{client: mgr.GetClient()})
}

type reconciler struct{ client client.Client }

// Reconcile gives a Namespace the label seen=yes.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var namespace corev1.Namespace
	if err := r.client.Get(ctx, req.NamespacedName, &namespace); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if namespace.Labels["seen"] == "yes" {
		return reconcile.Result{}, nil
	}
	if namespace.Labels == nil {
		namespace.Labels = map[string]string{}
	}
	namespace.Labels["seen"] = "yes"
	return reconcile.Result{}, r.client.Update(ctx, &namespace)
}
