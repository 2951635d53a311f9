package notmine

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// Reconcile creates the Service of a FluxSetup that the operator has written.
func Reconcile(ctx context.Context, c client.Client, key client.ObjectKey) error {
	setup := &v1alpha1.FluxSetup{}
	if err := c.Get(ctx, key, setup); err != nil {
		return client.IgnoreNotFound(err)
	}
	owner := metav1.GetControllerOf(setup)
	if owner == nil || owner.Kind != "Flux" || owner.Name != setup.Name {
		return report(ctx, c, setup, metav1.ConditionFalse, "NotOwned")
	}
	flux := &v1alpha1.Flux{}
	err := c.Get(ctx, key, flux)
	if apierrors.IsNotFound(err) || (err == nil && flux.UID != owner.UID) {
		return report(ctx, c, setup, metav1.ConditionFalse, "NotOwned")
	}
	if err != nil {
		return err
	}
	service := &corev1.Service{}
	if err := c.Get(ctx, key, service); apierrors.IsNotFound(err) {
		err = c.Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: setup.Name, Namespace: setup.Namespace, OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(setup, v1alpha1.SchemeGroupVersion.WithKind("FluxSetup")),
			}},
			Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone},
		})
		if err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	return report(ctx, c, setup, metav1.ConditionTrue, "Owned")
}

// report writes the condition, if it says something new.
func report(ctx context.Context, c client.Client, setup *v1alpha1.FluxSetup, status metav1.ConditionStatus, reason string) error {
	before := setup.DeepCopy()
	changed := apimeta.SetStatusCondition(&setup.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionAccepted, Status: status, Reason: reason, ObservedGeneration: setup.Generation,
	})
	if !changed {
		return nil
	}
	return c.Status().Patch(ctx, setup, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
