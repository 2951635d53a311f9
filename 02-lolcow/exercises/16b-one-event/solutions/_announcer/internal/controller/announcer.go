package controller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"

	"example.com/my-lolcow/api/v1alpha1"
)

// eventTypes are the types of Events by the reason of the condition Ready. A reason that is not here is not announced.
var eventTypes = map[string]string{
	"Serving":                  corev1.EventTypeNormal,
	"ScaledToZero":             corev1.EventTypeNormal,
	"PortConflict":             corev1.EventTypeWarning,
	"ApplyFailed":              corev1.EventTypeWarning,
	"APIError":                 corev1.EventTypeWarning,
	"ProgressDeadlineExceeded": corev1.EventTypeWarning,
}

// announcer sends Events about one Lolcow.
type announcer struct {
	recorder events.EventRecorder
	lolcow   *v1alpha1.Lolcow
	// last is the reason that was in the status when the Lolcow was read: it is announced already.
	last string
}

func announcerFor(lolcow *v1alpha1.Lolcow, recorder events.EventRecorder) announcer {
	a := announcer{recorder: recorder, lolcow: lolcow}
	if ready := meta.FindStatusCondition(lolcow.Status.Conditions, "Ready"); ready != nil {
		a.last = ready.Reason
	}
	return a
}

// announce sends an Event if the reason is another one now.
func (a announcer) announce() {
	ready := meta.FindStatusCondition(a.lolcow.Status.Conditions, "Ready")
	if eventType := eventTypes[ready.Reason]; eventType != "" && ready.Reason != a.last {
		a.recorder.Eventf(a.lolcow, nil, eventType, ready.Reason, "Reconcile", "%s", ready.Message)
	}
}
