//go:build start

package latch

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// Reconcile creates the workers of a Goop, notices their end, and deletes them after the TTL.
func Reconcile(ctx context.Context, c client.Client, now time.Time, key client.ObjectKey) (reconcile.Result, error) {
	var goop v1alpha1.Goop
	if err := c.Get(ctx, key, &goop); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	for i := range *goop.Spec.JobCount {
		if err := create(ctx, c, &goop, i); err != nil {
			return reconcile.Result{}, err
		}
	}
	// TODO: the end, and what comes after it.
	return reconcile.Result{}, nil
}

// create creates a worker if it is not there.
func create(ctx context.Context, c client.Client, goop *v1alpha1.Goop, i int32) error {
	worker := &corev1.ConfigMap{}
	worker.Namespace, worker.Name = goop.Namespace, fmt.Sprintf("%s-%d", goop.Name, i)
	if err := c.Get(ctx, client.ObjectKeyFromObject(worker), worker); !apierrors.IsNotFound(err) {
		return err
	}
	if err := controllerutil.SetControllerReference(goop, worker, c.Scheme()); err != nil {
		return err
	}
	return c.Create(ctx, worker)
}
