package portit

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
)

const (
	image               = "example.com/foo"
	deploymentNameIndex = "spec.deploymentName"
)

// Setup adds the controller of Foos to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager) error {
	r := &reconciler{mgr.GetClient()}
	err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Foo{}, deploymentNameIndex, func(object client.Object) []string {
		return []string{object.(*v1alpha1.Foo).Spec.DeploymentName}
	})
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Foo{}).
		Owns(&appsv1.Deployment{}).
		Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(r.foosNaming)).
		Complete(r)
}

type reconciler struct {
	client.Client
}

// foosNaming are the Foos whose spec names a Deployment.
func (r *reconciler) foosNaming(ctx context.Context, deployment client.Object) []reconcile.Request {
	var list v1alpha1.FooList
	err := r.List(ctx, &list, client.InNamespace(deployment.GetNamespace()), client.MatchingFields{deploymentNameIndex: deployment.GetName()})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the Foos whose spec names a Deployment failed")
		return nil
	}
	requests := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
	}
	return requests
}

// Reconcile makes the Deployment that a Foo asks for, deletes that of an earlier name, and reports.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	f := &v1alpha1.Foo{}
	if err := r.Get(ctx, req.NamespacedName, f); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	live := &appsv1.Deployment{}
	err := r.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: f.Spec.DeploymentName}, live)
	switch {
	case apierrors.IsNotFound(err):
		live = nil
	case err != nil:
		return ctrl.Result{}, err
	case !metav1.IsControlledBy(live, f):
		return ctrl.Result{}, r.report(ctx, f, foo.Observation{Failure: foo.NameConflict(live.Name)})
	}
	if err := r.apply(ctx, f, live); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.deleteOthers(ctx, f); err != nil {
		return ctrl.Result{}, err
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

// deleteOthers deletes the Deployments of earlier names.
func (r *reconciler) deleteOthers(ctx context.Context, f *v1alpha1.Foo) error {
	var list appsv1.DeploymentList
	if err := r.List(ctx, &list, client.InNamespace(f.Namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		one := &list.Items[i]
		if one.Name == f.Spec.DeploymentName || !metav1.IsControlledBy(one, f) {
			continue
		}
		if err := r.Delete(ctx, one, client.Preconditions{UID: &one.UID}); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// report patches the status if it has changed.
func (r *reconciler) report(ctx context.Context, f *v1alpha1.Foo, observed foo.Observation) error {
	before := f.DeepCopy()
	f.Status = foo.Status(f, observed, metav1.Now())
	if apiequality.Semantic.DeepEqual(f.Status, before.Status) {
		return nil
	}
	return r.Status().Patch(ctx, f, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
