//go:build start

package secondkind

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/03-flux/exercises/internal/defaults"
)

// Reconcile keeps the FluxSetup of a Flux.
func Reconcile(ctx context.Context, c client.Client, operator defaults.Defaults, key client.ObjectKey) error {
	var flux v1alpha1.Flux
	if err := c.Get(ctx, key, &flux); err != nil {
		return client.IgnoreNotFound(err)
	}
	var setup v1alpha1.FluxSetup
	err := c.Get(ctx, key, &setup)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	before := setup.DeepCopy()
	// TODO: what of this may change after the creation?
	setup.Name, setup.Namespace = key.Name, key.Namespace
	setup.Spec = operator.Resolve(&flux)
	setup.OwnerReferences = nil
	if err := controllerutil.SetControllerReference(&flux, &setup, c.Scheme()); err != nil {
		return err
	}
	if apierrors.IsNotFound(err) {
		return c.Create(ctx, &setup)
	}
	if apiequality.Semantic.DeepEqual(before, &setup) {
		return nil
	}
	return c.Update(ctx, &setup)
}
