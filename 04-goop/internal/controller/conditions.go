package controller

import (
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// setCondition sets one condition. While requests fail for reasons that pass, the first message stays: the next retry
// may fail with another text, and each text would be a write.
func setCondition(conditions *[]metav1.Condition, condition metav1.Condition) {
	condition.Message = shorten(condition.Message, maxConditionMessage)
	before := conditionOf(*conditions, condition.Type)
	if condition.Reason == v1alpha1.ReasonAPIError && before.Reason == condition.Reason && before.ObservedGeneration == condition.ObservedGeneration {
		condition.Message = before.Message
	}
	apimeta.SetStatusCondition(conditions, condition)
}

// observeGeneration says which generation those of the conditions speak of that are of these types. Those of other controllers
// stay as they are.
func observeGeneration(conditions []metav1.Condition, generation int64, types ...string) {
	for i := range conditions {
		if slices.Contains(types, conditions[i].Type) {
			conditions[i].ObservedGeneration = generation
		}
	}
}

// conditionOf returns the condition of a type, or an empty one.
func conditionOf(conditions []metav1.Condition, conditionType string) metav1.Condition {
	return ptr.Deref(apimeta.FindStatusCondition(conditions, conditionType), metav1.Condition{})
}
