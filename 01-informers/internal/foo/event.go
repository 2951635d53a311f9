package foo

import (
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

// Event is what to tell a user of a transition.
type Event struct {
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type string
	// Reason is that of the condition, Note its message, as far as an Event has room for it.
	Reason, Note string
}

// Action is the action of all our Events: what the controller was doing.
const Action = "Reconcile"

// Events returns the Events that the way from one status to the next is worth: one for a transition of
// Ready, unless it is to RollingOut, which is part of every change that a user has just asked for; and one
// when the controller gives up.
func Events(before, after v1alpha1.FooStatus) []Event {
	var events []Event
	was, is := ReadyOf(before), ReadyOf(after)
	if (was.Status != is.Status || was.Reason != is.Reason) && is.Reason != v1alpha1.ReasonRollingOut {
		kind := corev1.EventTypeWarning
		if is.Reason == v1alpha1.ReasonAvailable || is.Reason == v1alpha1.ReasonScaledToZero {
			kind = corev1.EventTypeNormal
		}
		events = append(events, Event{Type: kind, Reason: is.Reason, Note: shorten(is.Message, maxEventNote)})
	}
	stalled := apimeta.FindStatusCondition(after.Conditions, v1alpha1.ConditionStalled)
	if stalled != nil && apimeta.FindStatusCondition(before.Conditions, v1alpha1.ConditionStalled) == nil {
		events = append(events, Event{Type: corev1.EventTypeWarning, Reason: stalled.Reason, Note: stalled.Message})
	}
	return events
}

// ReadyOf returns the condition Ready of a status, or an empty one.
func ReadyOf(status v1alpha1.FooStatus) metav1.Condition {
	return ptr.Deref(apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady), metav1.Condition{})
}
