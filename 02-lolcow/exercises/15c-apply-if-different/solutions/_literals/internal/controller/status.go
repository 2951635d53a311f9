package controller

import (
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/my-lolcow/api/v1alpha1"
)

// condition is what the condition Ready says. It is True for the reason Serving only.
type condition struct{ reason, message string }

func conditionOf(deployment *appsv1.Deployment, failed error) condition {
	switch {
	case portConflict(failed):
		return condition{"PortConflict", failed.Error()}
	case nameConflict(failed):
		return condition{"NameConflict", failed.Error()}
	case rejected(failed):
		return condition{"ApplyFailed", failed.Error()}
	case failed != nil:
		return condition{"APIError", failed.Error()}
	}
	desired, now := *deployment.Spec.Replicas, deployment.Status
	switch {
	case now.ObservedGeneration < deployment.Generation:
		return condition{"RollingOut", ""}
	case now.Replicas == desired && now.UpdatedReplicas == desired && now.AvailableReplicas == desired:
		if desired == 0 {
			return condition{"ScaledToZero", ""}
		}
		return condition{"Serving", ""}
	}
	for _, one := range now.Conditions {
		if one.Type == appsv1.DeploymentProgressing && one.Status == corev1.ConditionFalse {
			return condition{"ProgressDeadlineExceeded", one.Message}
		}
	}
	return condition{"RollingOut", ""}
}

// setIn sets the condition in a Lolcow, and returns the reason that it had.
func (c condition) setIn(lolcow *v1alpha1.Lolcow) string {
	var was string
	if ready := meta.FindStatusCondition(lolcow.Status.Conditions, "Ready"); ready != nil {
		was = ready.Reason
	}
	status := metav1.ConditionFalse
	if c.reason == "Serving" {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&lolcow.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: status, Reason: c.reason, Message: c.message, ObservedGeneration: lolcow.Generation,
	})
	return was
}

// eventType is that of the Event; empty where none is needed.
func (c condition) eventType() string {
	switch c.reason {
	case "RollingOut":
		return ""
	case "Serving", "ScaledToZero":
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

// notOurs is the error where an object has the name of a dependent, and the Lolcow does not own it.
type notOurs struct{ kind, name string }

// Error says which object it is.
func (e *notOurs) Error() string {
	return "the Lolcow does not own the " + e.kind + " " + e.name
}

func nameConflict(err error) bool {
	_, is := errors.AsType[*notOurs](err)
	return is
}
