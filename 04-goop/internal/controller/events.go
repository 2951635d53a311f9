package controller

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// longestNote is what the API server takes of the text of an Event, in bytes. An Event with more is lost.
const longestNote = 1024

// writeStatus writes the status, and then Events for what is new in it.
func (r *GoopReconciler) writeStatus(ctx context.Context, seen *facts, status v1alpha1.GoopStatus) error {
	// The lock is there because a merge patch replaces whole lists.
	before := seen.goop.DeepCopy()
	seen.goop.Status = status
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Status().Patch(ctx, seen.goop, patch, client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("writing status of Goop %s: %w", before.Name, err)
	}
	for _, one := range occurrences(before.Status, status) {
		ctrl.LoggerFrom(ctx).Info("Goop changed", "reason", one.reason, "message", one.message)
		r.announce(seen.goop, one)
	}
	return nil
}

func (r *GoopReconciler) announce(goop *v1alpha1.Goop, one occurrence) {
	r.Recorder.Eventf(goop, nil, one.kind, one.reason, "Reconcile", "%s", shorten(one.message, longestNote))
}

// occurrence is a transition that users are told of in an Event.
type occurrence struct {
	kind, reason, message string
}

// occurrences are the transitions from one status to the next.
func occurrences(before, after v1alpha1.GoopStatus) []occurrence {
	var all []occurrence
	was := func(kind string) metav1.Condition { return conditionOf(before, kind) }
	is := func(kind string) metav1.Condition { return conditionOf(after, kind) }
	began := func(kind string) bool {
		return is(kind).Status == metav1.ConditionTrue && was(kind).Status != metav1.ConditionTrue
	}
	running := is(v1alpha1.ConditionRunning)
	switch {
	case running.Reason == was(v1alpha1.ConditionRunning).Reason:
	case isObstacle[running.Reason]:
		all = append(all, occurrence{corev1.EventTypeWarning, running.Reason, running.Message})
	case running.Reason == v1alpha1.ReasonWorking:
		all = append(all, occurrence{corev1.EventTypeNormal, v1alpha1.ReasonWorking, running.Message})
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
	return all
}

// isObstacle tells what a user should look at from what passes by itself.
var isObstacle = map[string]bool{
	v1alpha1.ReasonNoEligibleNodes:   true,
	v1alpha1.ReasonTooManyRounds:     true,
	v1alpha1.ReasonHostAccessRefused: true,
	v1alpha1.ReasonNameConflict:      true,
	v1alpha1.ReasonImageNotPulled:    true,
	v1alpha1.ReasonNoPods:            true,
	v1alpha1.ReasonWorkersNotStarted: true,
	v1alpha1.ReasonRecordUnreadable:  true,
	v1alpha1.ReasonApplyFailed:       true,
}

func conditionOf(status v1alpha1.GoopStatus, kind string) metav1.Condition {
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
