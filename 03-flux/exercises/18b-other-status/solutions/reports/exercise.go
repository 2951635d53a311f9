package otherstatus

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// SetupReady says in a condition of the Flux how its FluxSetup is.
func SetupReady(flux *v1alpha1.Flux, setup *v1alpha1.FluxSetup) metav1.Condition {
	status, reason, message := ready(flux, setup)
	return metav1.Condition{
		Type: v1alpha1.ConditionSetupReady, Status: status, Reason: reason, Message: message, ObservedGeneration: flux.Generation,
	}
}

func ready(flux *v1alpha1.Flux, setup *v1alpha1.FluxSetup) (status metav1.ConditionStatus, reason, message string) {
	if setup == nil {
		return metav1.ConditionFalse, "SetupMissing", "there is no FluxSetup"
	}
	if owner := metav1.GetControllerOf(setup); owner == nil || owner.UID != flux.UID {
		return metav1.ConditionFalse, "NotOwned", "the FluxSetup is not controlled by this Flux"
	}
	if !setup.DeletionTimestamp.IsZero() {
		return metav1.ConditionFalse, "SetupDeleting", "the FluxSetup is being deleted"
	}
	// The reports about the spec as it is now.
	reports := map[string]metav1.Condition{}
	for _, condition := range setup.Status.Conditions {
		if condition.ObservedGeneration == setup.Generation {
			reports[condition.Type] = condition
		}
	}
	steps := []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionConfigured}
	for _, step := range steps {
		if _, found := reports[step]; !found {
			return metav1.ConditionUnknown, "SetupPending", "there is no report about " + step
		}
	}
	for _, step := range steps {
		if report := reports[step]; report.Status != metav1.ConditionTrue {
			return report.Status, report.Reason, report.Message
		}
	}
	return metav1.ConditionTrue, "Configured", ""
}
