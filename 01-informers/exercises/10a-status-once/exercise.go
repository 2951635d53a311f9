//go:build start

package status

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/generated/clientset/versioned"
)

// WriteStatus writes the status of the Foo if it has changed.
func WriteStatus(ctx context.Context, client versioned.Interface, foo *v1alpha1.Foo, deployment *appsv1.Deployment) error {
	// TODO: write only what has changed, and add the condition and the generation.
	updated := foo.DeepCopy()
	updated.Status.AvailableReplicas = deployment.Status.AvailableReplicas
	_, err := client.FooV1alpha1().Foos(foo.Namespace).UpdateStatus(ctx, updated, metav1.UpdateOptions{})
	return err
}
