package otherstatus

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// SetupReady says in a condition of the Flux how its FluxSetup is.
func SetupReady(flux *v1alpha1.Flux, setup *v1alpha1.FluxSetup) metav1.Condition {
	condition := metav1.Condition{
		Type: v1alpha1.ConditionSetupReady, Status: metav1.ConditionFalse, ObservedGeneration: flux.Generation,
	}
	switch {
	case setup == nil:
		condition.Reason = "SetupMissing"
		return condition
	case !metav1.IsControlledBy(setup, flux):
		condition.Reason = "NotOwned"
		return condition
	case setup.DeletionTimestamp != nil:
		condition.Reason = "SetupDeleting"
		return condition
	}
	accepted := apimeta.FindStatusCondition(setup.Status.Conditions, v1alpha1.ConditionAccepted)
	configured := apimeta.FindStatusCondition(setup.Status.Conditions, v1alpha1.ConditionConfigured)
	if !isCurrent(setup, accepted) || !isCurrent(setup, configured) {
		condition.Status, condition.Reason = metav1.ConditionUnknown, "SetupPending"
		return condition
	}
	lifted := accepted
	if accepted.Status == metav1.ConditionTrue {
		lifted = configured
	}
	condition.Status, condition.Reason, condition.Message = lifted.Status, lifted.Reason, lifted.Message
	if lifted.Status == metav1.ConditionTrue {
		condition.Reason = "Configured"
	}
	return condition
}

// isCurrent says whether a condition is about the spec as it is now.
func isCurrent(setup *v1alpha1.FluxSetup, condition *metav1.Condition) bool {
	return condition != nil && (condition.Status != metav1.ConditionTrue || condition.ObservedGeneration == setup.Generation)
}
