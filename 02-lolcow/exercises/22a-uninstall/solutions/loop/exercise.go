package uninstall

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Uninstall removes the operator, its CRD and all Teapots.
func Uninstall(ctx context.Context, c client.Client) error {
	if err := deleteTeapots(ctx, c); err != nil {
		return err
	}
	operator := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kitchen-operator"}}
	if err := client.IgnoreNotFound(c.Delete(ctx, operator)); err != nil {
		return err
	}
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("teapots.kitchen.example.com")
	return client.IgnoreNotFound(c.Delete(ctx, crd))
}

// deleteTeapots deletes all Teapots, and waits until none is left.
func deleteTeapots(ctx context.Context, c client.Client) error {
	var left []string
	for {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("kitchen.example.com/v1")
		list.SetKind("TeapotList")
		err := c.List(ctx, list)
		if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the operator has not cleaned up after %v: %w", left, err)
		}
		if len(list.Items) == 0 {
			return nil
		}
		left = nil
		for i := range list.Items {
			left = append(left, client.ObjectKeyFromObject(&list.Items[i]).String())
			if list.Items[i].GetDeletionTimestamp() != nil {
				continue
			}
			if err := client.IgnoreNotFound(c.Delete(ctx, &list.Items[i])); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the operator has not cleaned up after %v: %w", left, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
