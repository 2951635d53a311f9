package notmine

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	owned, err := isOwned(ctx, c, &setup)
	if err != nil {
		return err
	}
	condition := metav1.Condition{
		Type: "Accepted", Status: metav1.ConditionFalse, Reason: "NotOwned", ObservedGeneration: setup.Generation,
		Message: "no Flux of the same name owns it",
	}
	if owned {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, "Owned", ""
		if err := ensureService(ctx, c, &setup); err != nil {
			return err
		}
	}
	before := setup.Status.DeepCopy()
	apimeta.SetStatusCondition(&setup.Status.Conditions, condition)
	if apiequality.Semantic.DeepEqual(before, &setup.Status) {
		return nil
	}
	return c.Status().Update(ctx, &setup)
}

// isOwned says whether the Flux of the same name controls the FluxSetup.
func isOwned(ctx context.Context, c client.Client, setup *v1alpha1.FluxSetup) (bool, error) {
	var flux v1alpha1.Flux
	if err := c.Get(ctx, client.ObjectKeyFromObject(setup), &flux); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return metav1.IsControlledBy(setup, &flux), nil
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
