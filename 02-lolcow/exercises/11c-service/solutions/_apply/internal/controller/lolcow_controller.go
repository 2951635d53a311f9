package controller

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/my-lolcow/api/v1alpha1"
)

// LolcowReconciler reconciles a Lolcow object
type LolcowReconciler struct {
	client.Client
	Scheme *runtime.Scheme
}

// +kubebuilder:rbac:groups=my.domain,resources=lolcows,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=my.domain,resources=lolcows/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=my.domain,resources=lolcows/finalizers,verbs=update

// Reconcile applies the Deployment and the Service of one Lolcow. Where nothing has changed, the API server writes nothing.
func (r *LolcowReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var lolcow v1alpha1.Lolcow
	if err := r.Get(ctx, req.NamespacedName, &lolcow); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var errs []error
	for _, desired := range []runtime.ApplyConfiguration{desiredDeployment(&lolcow), desiredService(&lolcow)} {
		errs = append(errs, r.Apply(ctx, desired, client.FieldOwner("lolcow"), client.ForceOwnership))
	}
	return ctrl.Result{}, errors.Join(errs...)
}

// SetupWithManager sets up the controller with the Manager.
func (r *LolcowReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Lolcow{}).
		Named("lolcow").
		Complete(r)
}
