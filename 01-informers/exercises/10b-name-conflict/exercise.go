//go:build start

package nameconflict

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/foo"
	"example.com/workbook/01-informers/internal/generated/clientset/versioned"
)

const image = "example.com/foo"

// Reconcile makes the Deployment that the Foo asks for, deletes that of an earlier name, and reports.
func Reconcile(ctx context.Context, client kubernetes.Interface, foos versioned.Interface,
	event func(reason, message string), f *v1alpha1.Foo) error {
	// TODO: whose Deployment has the name? And what about the Deployment of the name before?
	applied, err := client.AppsV1().Deployments(f.Namespace).
		Apply(ctx, foo.Deployment(f, image), metav1.ApplyOptions{FieldManager: foo.FieldOwner, Force: true})
	if err != nil {
		return err
	}
	return report(ctx, foos, event, f, foo.Observation{Deployment: applied})
}

// report writes the status if it has changed.
func report(ctx context.Context, foos versioned.Interface, event func(reason, message string),
	f *v1alpha1.Foo, observed foo.Observation) error {
	updated := f.DeepCopy()
	updated.Status = foo.Status(f, observed, metav1.Now())
	if apiequality.Semantic.DeepEqual(updated.Status, f.Status) {
		return nil
	}
	// TODO: send an Event.
	_, err := foos.FooV1alpha1().Foos(f.Namespace).UpdateStatus(ctx, updated, metav1.UpdateOptions{})
	return err
}
