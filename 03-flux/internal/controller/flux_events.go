package controller

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// longestNote is what the API server takes of the text of an Event, in bytes. An Event with more is lost.
const longestNote = 1024

// occurrence is a transition that users are told of in an Event.
type occurrence struct {
	kind, reason, message string
}

// occurrences are the transitions from one status to the next. What every Flux goes through before its work
// begins is a condition, but not an Event.
func occurrences(before, after v1alpha1.FluxStatus) []occurrence {
	var all []occurrence
	was := func(kind string) metav1.Condition { return conditionOf(before, kind) }
	is := func(kind string) metav1.Condition { return conditionOf(after, kind) }
	began := func(kind string) bool {
		return is(kind).Status == metav1.ConditionTrue && was(kind).Status != metav1.ConditionTrue
	}

	if ready := is(v1alpha1.ConditionSetupReady); isObstacle(ready) && ready.Reason != was(v1alpha1.ConditionSetupReady).Reason {
		all = append(all, occurrence{corev1.EventTypeWarning, ready.Reason, ready.Message})
	}
	if after.Restarts > before.Restarts {
		all = append(all, occurrence{corev1.EventTypeWarning, v1alpha1.ReasonRestarting, is(v1alpha1.ConditionRestarting).Message})
	}
	if began(v1alpha1.ConditionRunning) {
		all = append(all, occurrence{corev1.EventTypeNormal, v1alpha1.ConditionRunning, is(v1alpha1.ConditionRunning).Message})
	}
	if began(v1alpha1.ConditionSuspended) {
		all = append(all, occurrence{corev1.EventTypeNormal, v1alpha1.ReasonSuspended, is(v1alpha1.ConditionSuspended).Message})
	}
	if began(v1alpha1.ConditionComplete) {
		all = append(all, occurrence{corev1.EventTypeNormal, is(v1alpha1.ConditionComplete).Reason, is(v1alpha1.ConditionComplete).Message})
	}
	if began(v1alpha1.ConditionFailed) {
		all = append(all, occurrence{corev1.EventTypeWarning, is(v1alpha1.ConditionFailed).Reason, is(v1alpha1.ConditionFailed).Message})
	}
	for i := range all {
		all[i].message = shorten(all[i].message, longestNote)
	}
	return all
}

// isObstacle tells what a user should look at from what passes by itself.
func isObstacle(ready metav1.Condition) bool {
	return ready.Status != metav1.ConditionTrue &&
		(ready.Reason == v1alpha1.ReasonNameConflict || ready.Reason == v1alpha1.ReasonApplyFailed)
}

func conditionOf(status v1alpha1.FluxStatus, kind string) metav1.Condition {
	return ptr.Deref(apimeta.FindStatusCondition(status.Conditions, kind), metav1.Condition{})
}

// shorten cuts a text to so many bytes, between two characters.
func shorten(text string, limit int) string {
	const more = "…"
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(more)], "") + more
}
