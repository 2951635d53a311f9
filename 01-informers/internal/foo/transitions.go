package foo

import (
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

// Action is the action of all our Events: what the controller was doing.
const Action = "Reconcile"

// Transition is a change of a condition. It is logged, and may be worth an Event.
type Transition struct {
	// EventType is Normal or Warning. If it is empty, the transition is logged only.
	EventType string
	// Condition is what became of the condition. Its reason is that of the Event.
	metav1.Condition
}

// Note is the text of the Event: the message of the condition, as long as the API server accepts it.
func (t Transition) Note() string { return shorten(t.Message, maxEventNote) }

// Transitions are the changes of the condition Ready, and that the Foo becomes Stalled. A rollout is part of every change
// that a user makes and has just asked for: it is a condition, but not an Event.
func Transitions(before, after v1alpha1.FooStatus) []Transition {
	var transitions []Transition
	if was, is := ReadyOf(before), ReadyOf(after); was.Status != is.Status || was.Reason != is.Reason {
		eventType := corev1.EventTypeWarning
		switch is.Reason {
		case v1alpha1.ReasonRollingOut:
			eventType = ""
		case v1alpha1.ReasonAvailable, v1alpha1.ReasonScaledToZero:
			eventType = corev1.EventTypeNormal
		}
		transitions = append(transitions, Transition{eventType, is})
	}
	stalled := apimeta.FindStatusCondition(after.Conditions, v1alpha1.ConditionStalled)
	if stalled != nil && apimeta.FindStatusCondition(before.Conditions, v1alpha1.ConditionStalled) == nil {
		transitions = append(transitions, Transition{corev1.EventTypeWarning, *stalled})
	}
	return transitions
}

// ReadyOf returns the condition Ready of a status, or an empty one.
func ReadyOf(status v1alpha1.FooStatus) metav1.Condition {
	return conditionOf(status.Conditions, v1alpha1.ConditionReady)
}
