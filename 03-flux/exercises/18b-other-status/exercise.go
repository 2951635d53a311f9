//go:build start

package otherstatus

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// SetupReady says in a condition of the Flux how its FluxSetup is.
func SetupReady(flux *v1alpha1.Flux, setup *v1alpha1.FluxSetup) metav1.Condition {
	condition := metav1.Condition{Type: v1alpha1.ConditionSetupReady, ObservedGeneration: flux.Generation}
	// TODO: look at the FluxSetup.
	condition.Status, condition.Reason = metav1.ConditionTrue, v1alpha1.ConditionConfigured
	return condition
}
