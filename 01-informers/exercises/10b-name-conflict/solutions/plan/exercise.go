package nameconflict

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
	"example.com/workbook/01-informers/internal/generated/clientset/versioned"
)

const image = "example.com/foo"

// plan is what follows from the Deployments of the namespace.
type plan struct {
	// conflict is set if another one has the name.
	conflict *foo.Failure
	desired  *appsv1ac.DeploymentApplyConfiguration
	force    bool
	outdated []*appsv1.Deployment
}

// planFor decides without a request.
func planFor(f *v1alpha1.Foo, deployments []appsv1.Deployment) plan {
	p := plan{desired: foo.Deployment(f, image).WithResourceVersion(foo.CreateOnlyResourceVersion)}
	for i := range deployments {
		one := &deployments[i]
		owned, named := metav1.IsControlledBy(one, f), one.Name == f.Spec.DeploymentName
		switch {
		case owned && named:
			p.desired, p.force = p.desired.WithUID(one.UID).WithResourceVersion(one.ResourceVersion), true
		case owned:
			p.outdated = append(p.outdated, one)
		case named:
			p.conflict = foo.NameConflict(one.Name)
		}
	}
	return p
}

// Reconcile makes the Deployment that the Foo asks for, deletes that of an earlier name, and reports.
func Reconcile(ctx context.Context, client kubernetes.Interface, foos versioned.Interface,
	event func(reason, message string), f *v1alpha1.Foo) error {
	deployments := client.AppsV1().Deployments(f.Namespace)
	list, err := deployments.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	p := planFor(f, list.Items)
	if p.conflict != nil {
		return report(ctx, foos, event, f, foo.Observation{Failure: p.conflict})
	}
	applied, err := deployments.Apply(ctx, p.desired, metav1.ApplyOptions{FieldManager: foo.FieldOwner, Force: p.force})
	if err != nil {
		return err
	}
	for _, one := range p.outdated {
		err := deployments.Delete(ctx, one.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(one.UID))})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return report(ctx, foos, event, f, foo.Observation{Deployment: applied})
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
