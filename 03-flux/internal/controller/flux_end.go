package controller

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// ending is how a Flux ends.
type ending struct {
	// condition is Complete or Failed.
	condition, reason, message string
	exitCode                   *int32
}

// endOf returns how the Flux ends by the status of its FluxSetup; nil if it does not end.
func endOf(flux *v1alpha1.Flux, setup *v1alpha1.FluxSetup) *ending {
	if !current(setup) {
		return nil
	}
	if apimeta.IsStatusConditionTrue(setup.Status.Conditions, v1alpha1.ConditionComplete) {
		return &ending{
			condition: v1alpha1.ConditionComplete, reason: v1alpha1.ReasonCommandSucceeded,
			message: "the command exited with 0", exitCode: new(int32(0)),
		}
	}
	failed := failedCondition(setup)
	if failed == nil || (failed.Reason != v1alpha1.ReasonDeadlineExceeded && setup.Spec.Restarts < flux.Spec.MaxRestarts) {
		return nil
	}
	return &ending{
		condition: v1alpha1.ConditionFailed, reason: failed.Reason, message: failed.Message,
		exitCode: setup.Status.ExitCode,
	}
}

// lateEnding returns what the FluxSetup now reports of an end that is already in the status of the Flux: exit code and
// output may follow when the operator itself has ended the work. nil if the FluxSetup reports no such end.
func lateEnding(flux *v1alpha1.Flux, setup *v1alpha1.FluxSetup) *ending {
	if setup == nil {
		return nil
	}
	end := endOf(flux, setup)
	if end == nil || conditionOf(flux.Status.Conditions, end.condition).Reason != end.reason {
		return nil
	}
	return end
}

// failedCondition is the failure of the current attempt; nil if it has not failed.
func failedCondition(setup *v1alpha1.FluxSetup) *metav1.Condition {
	if !current(setup) {
		return nil
	}
	return trueCondition(setup.Status.Conditions, v1alpha1.ConditionFailed)
}

// ended reports whether a Flux has ended: Complete and Failed are never unset.
func ended(flux *v1alpha1.Flux) bool {
	return apimeta.IsStatusConditionTrue(flux.Status.Conditions, v1alpha1.ConditionComplete) ||
		apimeta.IsStatusConditionTrue(flux.Status.Conditions, v1alpha1.ConditionFailed)
}
