package portit

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
)

const image = "example.com/foo"

// Setup adds the controller of Foos to a manager.
func Setup(_ context.Context, mgr ctrl.Manager) error {
	r := &reconciler{mgr.GetClient()}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Foo{}).
		Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(r.foosOf)).
		Complete(r)
}

type reconciler struct {
	client.Client
}

// foosOf are the Foos that control a Deployment or whose spec names it.
func (r *reconciler) foosOf(ctx context.Context, deployment client.Object) []reconcile.Request {
	var list v1alpha1.FooList
	if err := r.List(ctx, &list, client.InNamespace(deployment.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the Foos of a Deployment failed")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		one := &list.Items[i]
		if one.Spec.DeploymentName == deployment.GetName() || metav1.IsControlledBy(deployment, one) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(one)})
		}
	}
	return requests
}

// Reconcile makes the Deployment that a Foo asks for, deletes that of an earlier name, and reports.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	f := &v1alpha1.Foo{}
	if err := r.Get(ctx, req.NamespacedName, f); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var list appsv1.DeploymentList
	if err := r.List(ctx, &list, client.InNamespace(f.Namespace)); err != nil {
		return ctrl.Result{}, err
	}
	var live *appsv1.Deployment
	var outdated []*appsv1.Deployment
	for i := range list.Items {
		one := &list.Items[i]
		owned, named := metav1.IsControlledBy(one, f), one.Name == f.Spec.DeploymentName
		switch {
		case owned && named:
			live = one
		case owned:
			outdated = append(outdated, one)
		case named:
			return ctrl.Result{}, r.report(ctx, f, foo.Observation{Failure: foo.NameConflict(one.Name)})
		}
	}
	if err := r.apply(ctx, f, live); err != nil {
		return ctrl.Result{}, err
	}
	for _, one := range outdated {
		if err := r.Delete(ctx, one, client.Preconditions{UID: &one.UID}); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, r.report(ctx, f, foo.Observation{Deployment: live})
}

// apply creates the Deployment if the cache has none, and otherwise changes it if it is not as desired.
func (r *reconciler) apply(ctx context.Context, f *v1alpha1.Foo, live *appsv1.Deployment) error {
	desired := foo.Deployment(f, image)
	if live == nil {
		return r.Apply(ctx, desired.WithResourceVersion(foo.CreateOnlyResourceVersion), client.FieldOwner(foo.FieldOwner))
	}
	if foo.InSync(live, desired) {
		return nil
	}
	desired = desired.WithUID(live.UID).WithResourceVersion(live.ResourceVersion)
	return r.Apply(ctx, desired, client.FieldOwner(foo.FieldOwner), client.ForceOwnership)
}

// report updates the status if it has changed.
func (r *reconciler) report(ctx context.Context, f *v1alpha1.Foo, observed foo.Observation) error {
	before := f.Status
	f.Status = foo.Status(f, observed, metav1.Now())
	if apiequality.Semantic.DeepEqual(f.Status, before) {
		return nil
	}
	return r.Status().Update(ctx, f)
}
