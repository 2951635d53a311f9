//go:build start

package uninstall

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Uninstall removes the operator, its CRD and all Teapots.
func Uninstall(ctx context.Context, c client.Client) error {
	// TODO: what has to be gone before the operator is deleted?
	operator := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kitchen-operator"}}
	if err := c.Delete(ctx, operator); err != nil {
		return err
	}
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("teapots.kitchen.example.com")
	return c.Delete(ctx, crd)
}
