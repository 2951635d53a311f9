package foo

import (
	appsv1 "k8s.io/api/apps/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

// Facts are what one pass saw of the world. They are all that the status is made from.
type Facts struct {
	// Deployment is the Foo's Deployment of the name in the spec; nil if there is none, or only a foreign one.
	Deployment *appsv1.Deployment
	// Refused is why the Deployment is not as the spec wants it; nil if nothing was refused.
	Refused *Refusal
	// GaveUp says that the refusal was the last try for the present spec.
	GaveUp bool
}

// Status is the status that the facts amount to. All it takes from the old status is when a condition last
// changed. Numbers and times are not in the messages: each would be a write.
func Status(f *v1alpha1.Foo, seen Facts, now metav1.Time) v1alpha1.FooStatus {
	status := *f.Status.DeepCopy()
	status.ObservedGeneration = f.Generation
	status.AvailableReplicas = 0
	if seen.Deployment != nil {
		status.AvailableReplicas = seen.Deployment.Status.AvailableReplicas
	}

	set := func(condition metav1.Condition) {
		condition.ObservedGeneration = f.Generation
		condition.LastTransitionTime = now
		apimeta.SetStatusCondition(&status.Conditions, condition)
	}
	set(readyCondition(seen))
	if seen.GaveUp {
		set(stalledCondition())
	} else {
		apimeta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionStalled)
	}
	return status
}

// readyCondition decides the condition Ready: the first case that holds is the one a user can act on.
func readyCondition(seen Facts) metav1.Condition {
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}
	switch {
	// 1. The Deployment was refused: nothing below is as the spec wants it.
	case seen.Refused != nil:
		ready.Reason, ready.Message = seen.Refused.Reason, truncate(seen.Refused.Message, longestMessage)
	// 2. All pods are as wanted, and there are none.
	case rolledOut(seen.Deployment) && wantedReplicas(seen.Deployment) == 0:
		ready.Reason, ready.Message = v1alpha1.ReasonScaledToZero, "no replica is wanted, and none runs"
	// 3. All pods are as wanted.
	case rolledOut(seen.Deployment):
		ready.Status = metav1.ConditionTrue
		ready.Reason, ready.Message = v1alpha1.ReasonAvailable, "every replica is available"
	// 4. Pods are missing, and will come.
	default:
		ready.Reason, ready.Message = v1alpha1.ReasonRollingOut, "waiting for every replica to be replaced and available"
	}
	return ready
}

func stalledCondition() metav1.Condition {
	return metav1.Condition{
		Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRetriesExhausted,
		Message: "the API server refused the Deployment each time: nothing more is tried until the spec changes",
	}
}

// Stalled tells whether the controller has given up on the Foo's present spec.
func Stalled(f *v1alpha1.Foo) bool {
	stalled := apimeta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionStalled)
	return stalled != nil && stalled.Status == metav1.ConditionTrue && stalled.ObservedGeneration == f.Generation
}

// reported is the refusal that a stalled Foo's status tells of; nil for any other Foo.
func reported(f *v1alpha1.Foo) *Refusal {
	ready := apimeta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || !Stalled(f) {
		return nil
	}
	return &Refusal{Reason: ready.Reason, Message: ready.Message}
}

// rolledOut tells whether every pod of the Deployment is of its present template and available. The status
// counts only if the Deployment's controller wrote it for the present generation.
func rolledOut(deployment *appsv1.Deployment) bool {
	if deployment == nil {
		return false
	}
	wanted, status := wantedReplicas(deployment), deployment.Status
	return status.ObservedGeneration >= deployment.Generation &&
		status.UpdatedReplicas == wanted && status.AvailableReplicas == wanted && status.Replicas == wanted
}

func wantedReplicas(deployment *appsv1.Deployment) int32 {
	return ptr.Deref(deployment.Spec.Replicas, 1)
}
