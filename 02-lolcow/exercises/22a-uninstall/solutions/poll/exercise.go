package uninstall

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Uninstall removes the operator, its CRD and all Teapots.
func Uninstall(ctx context.Context, c client.Client) error {
	var left []string
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		names, err := sweep(ctx, c)
		if ctx.Err() == nil {
			left = names
		}
		return err == nil && len(names) == 0, err
	})
	if err != nil {
		return fmt.Errorf("these Teapots are left: %s: %w", strings.Join(left, ", "), err)
	}
	crd := &unstructured.Unstructured{}
	crd.SetName("teapots.kitchen.example.com")
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	return errors.Join(
		remove(ctx, c, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kitchen-operator"}}),
		remove(ctx, c, crd))
}

// sweep lets the deletion of all Teapots begin, and returns those that are there.
func sweep(ctx context.Context, c client.Client) ([]string, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "kitchen.example.com", Version: "v1", Kind: "TeapotList"})
	if err := c.List(ctx, list); apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].GetName())
		if err := remove(ctx, c, &list.Items[i]); err != nil {
			return nil, err
		}
	}
	return names, nil
}

func remove(ctx context.Context, c client.Client, o client.Object) error {
	return client.IgnoreNotFound(c.Delete(ctx, o))
}
