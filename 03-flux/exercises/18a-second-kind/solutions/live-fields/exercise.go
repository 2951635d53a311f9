package secondkind

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	if apierrors.IsNotFound(err) {
		return create(ctx, c, operator, &flux)
	}
	if err != nil {
		return err
	}
	if !metav1.IsControlledBy(&setup, &flux) {
		return fmt.Errorf("the FluxSetup %s is not that of the Flux", setup.Name)
	}
	before := setup.DeepCopy()
	setup.Spec.Suspend = flux.Spec.Suspend
	setup.Spec.StartupTimeoutSeconds = flux.Spec.StartupTimeoutSeconds
	setup.Spec.ActiveDeadlineSeconds = flux.Spec.ActiveDeadlineSeconds
	if apiequality.Semantic.DeepEqual(before, &setup) {
		return nil
	}
	return c.Update(ctx, &setup)
}

// create freezes the defaults.
func create(ctx context.Context, c client.Client, operator defaults.Defaults, flux *v1alpha1.Flux) error {
	setup := &v1alpha1.FluxSetup{Spec: operator.Resolve(flux)}
	setup.Name, setup.Namespace = flux.Name, flux.Namespace
	if err := controllerutil.SetControllerReference(flux, setup, c.Scheme()); err != nil {
		return err
	}
	return c.Create(ctx, setup)
}
