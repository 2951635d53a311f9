package nameconflict

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
	"example.com/workbook/01-informers/internal/generated/clientset/versioned"
)

const image = "example.com/foo"

// Reconcile makes the Deployment that the Foo asks for, deletes that of an earlier name, and reports.
func Reconcile(ctx context.Context, client kubernetes.Interface, foos versioned.Interface,
	event func(reason, message string), f *v1alpha1.Foo) error {
	deployments := client.AppsV1().Deployments(f.Namespace)
	live, err := deployments.Get(ctx, f.Spec.DeploymentName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		live = nil
	case err != nil:
		return err
	case !metav1.IsControlledBy(live, f):
		return report(ctx, foos, event, f, foo.Observation{Failure: foo.NameConflict(live.Name)})
	}
	applied, err := apply(ctx, deployments, f, live)
	if err != nil {
		return err
	}
	if err := deleteOthers(ctx, deployments, f); err != nil {
		return err
	}
	return report(ctx, foos, event, f, foo.Observation{Deployment: applied})
}

// apply creates the Deployment if none was read, and otherwise changes the one that was read.
func apply(ctx context.Context, deployments typedappsv1.DeploymentInterface, f *v1alpha1.Foo, live *appsv1.Deployment) (*appsv1.Deployment, error) {
	desired := foo.Deployment(f, image)
	if live == nil {
		return deployments.Apply(ctx, desired.WithResourceVersion(foo.CreateOnlyResourceVersion), metav1.ApplyOptions{FieldManager: foo.FieldOwner})
	}
	desired = desired.WithUID(live.UID).WithResourceVersion(live.ResourceVersion)
	return deployments.Apply(ctx, desired, metav1.ApplyOptions{FieldManager: foo.FieldOwner, Force: true})
}

// deleteOthers deletes the Deployments of earlier names.
func deleteOthers(ctx context.Context, deployments typedappsv1.DeploymentInterface, f *v1alpha1.Foo) error {
	list, err := deployments.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		one := &list.Items[i]
		if one.Name == f.Spec.DeploymentName || !metav1.IsControlledBy(one, f) {
			continue
		}
		err := deployments.Delete(ctx, one.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(one.UID))})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// report writes the status if it has changed, and sends an Event for a transition.
func report(ctx context.Context, foos versioned.Interface, event func(reason, message string),
	f *v1alpha1.Foo, observed foo.Observation) error {
	updated := f.DeepCopy()
	updated.Status = foo.Status(f, observed, metav1.Now())
	if apiequality.Semantic.DeepEqual(updated.Status, f.Status) {
		return nil
	}
	if _, err := foos.FooV1alpha1().Foos(f.Namespace).UpdateStatus(ctx, updated, metav1.UpdateOptions{}); err != nil {
		return err
	}
	for _, one := range foo.Transitions(f.Status, updated.Status) {
		if one.EventType != "" {
			event(one.Reason, one.Note())
		}
	}
	return nil
}
