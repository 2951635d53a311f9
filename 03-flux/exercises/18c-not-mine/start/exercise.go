//go:build start

package notmine

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// Reconcile creates the Service of a FluxSetup that the operator has written.
func Reconcile(ctx context.Context, c client.Client, key client.ObjectKey) error {
	var setup v1alpha1.FluxSetup
	if err := c.Get(ctx, key, &setup); err != nil {
		return client.IgnoreNotFound(err)
	}
	// TODO: who has written it?
	return ensureService(ctx, c, &setup)
}

// ensureService creates the Service if it is not there.
func ensureService(ctx context.Context, c client.Client, setup *v1alpha1.FluxSetup) error {
	service := &corev1.Service{}
	service.Name, service.Namespace = setup.Name, setup.Namespace
	service.Spec.ClusterIP = corev1.ClusterIPNone
	if err := controllerutil.SetControllerReference(setup, service, c.Scheme()); err != nil {
		return err
	}
	return client.IgnoreAlreadyExists(c.Create(ctx, service))
}
