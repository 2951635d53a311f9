package foo

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
)

// Observation is what one reconciliation observed. It is all that the status is computed from.
type Observation struct {
	// Deployment is the Foo's Deployment of the name in the spec; nil if there is none that the Foo owns.
	Deployment *appsv1.Deployment
	// Failure is why the Deployment could not be applied, or an earlier one not be deleted; nil if all could.
	Failure *Failure
	// Exhausted says that there is no other try for the present spec.
	Exhausted bool
}

// Status is the status that the observation amounts to. It takes from the old status only when a condition last changed.
func Status(f *v1alpha1.Foo, observed Observation, now metav1.Time) v1alpha1.FooStatus {
	status := *f.Status.DeepCopy()
	status.ObservedGeneration = f.Generation
	status.AvailableReplicas = 0
	if observed.Deployment != nil {
		status.AvailableReplicas = observed.Deployment.Status.AvailableReplicas
	}

	set := func(condition metav1.Condition) {
		condition.ObservedGeneration = f.Generation
		condition.LastTransitionTime = now
		setCondition(&status.Conditions, condition)
	}
	set(readyCondition(observed))
	if observed.Exhausted {
		set(metav1.Condition{
			Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRetriesExhausted,
			Message: "the API server rejected the Deployment each time: it is not tried again until the spec changes",
		})
	} else {
		apimeta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionStalled)
	}
	return status
}

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

// conditionOf returns the condition of a type, or an empty one.
func conditionOf(conditions []metav1.Condition, conditionType string) metav1.Condition {
	return ptr.Deref(apimeta.FindStatusCondition(conditions, conditionType), metav1.Condition{})
}

// readyCondition decides the condition Ready: the first case that holds is the one a user can act on.
func readyCondition(observed Observation) metav1.Condition {
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}
	notCreated := deploymentCondition(observed.Deployment, appsv1.DeploymentReplicaFailure, corev1.ConditionTrue)
	stalled := deploymentCondition(observed.Deployment, appsv1.DeploymentProgressing, corev1.ConditionFalse)
	switch {
	// 1. The Deployment could not be applied: nothing below can be as the spec describes it.
	case observed.Failure != nil:
		ready.Reason, ready.Message = observed.Failure.Reason, observed.Failure.Message
	// 2. All pods are as desired, and there are none.
	case rolledOut(observed.Deployment) && desiredReplicas(observed.Deployment) == 0:
		ready.Reason, ready.Message = v1alpha1.ReasonScaledToZero, "no replica is desired, and none runs"
	// 3. All pods are as desired.
	case rolledOut(observed.Deployment):
		ready.Status = metav1.ConditionTrue
		ready.Reason, ready.Message = v1alpha1.ReasonAvailable, "every replica is available"
	// 4. Pods are missing, and cannot be created: a quota, the namespace's Pod Security level.
	case notCreated != nil:
		ready.Reason, ready.Message = v1alpha1.ReasonPodsNotCreated, notCreated.Message
	// 5. Pods are missing for longer than the Deployment allows.
	case stalled != nil:
		ready.Reason, ready.Message = v1alpha1.ReasonProgressDeadlineExceeded, stalled.Message
	// 6. Pods are missing, and will be created. No numbers in the message: each would be a write.
	default:
		ready.Reason, ready.Message = v1alpha1.ReasonRollingOut, "waiting for every replica to be replaced and available"
	}
	return ready
}

// deploymentCondition returns the Deployment's condition of this type if it has this status for the present generation.
func deploymentCondition(deployment *appsv1.Deployment, conditionType appsv1.DeploymentConditionType, status corev1.ConditionStatus) *appsv1.DeploymentCondition {
	if deployment == nil || deployment.Status.ObservedGeneration < deployment.Generation {
		return nil
	}
	for i := range deployment.Status.Conditions {
		if condition := &deployment.Status.Conditions[i]; condition.Type == conditionType && condition.Status == status {
			return condition
		}
	}
	return nil
}

// reportedFailure is the failure in the status of a Foo that is Stalled for its present spec; nil for any other Foo.
func reportedFailure(f *v1alpha1.Foo) *Failure {
	stalled := apimeta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionStalled)
	ready := apimeta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || stalled == nil || stalled.Status != metav1.ConditionTrue || stalled.ObservedGeneration != f.Generation {
		return nil
	}
	return &Failure{Reason: ready.Reason, Message: ready.Message}
}

// rolledOut reports whether every pod of the Deployment is of its present template and available, and, where none is desired,
// whether none is left: one that is being deleted may still run, and is no replica any more.
// The status counts only if the Deployment's controller wrote it for the present generation.
func rolledOut(deployment *appsv1.Deployment) bool {
	if deployment == nil {
		return false
	}
	desired, status := desiredReplicas(deployment), deployment.Status
	return status.ObservedGeneration >= deployment.Generation &&
		status.UpdatedReplicas == desired && status.AvailableReplicas == desired && status.Replicas == desired &&
		(desired > 0 || ptr.Deref(status.TerminatingReplicas, 0) == 0)
}

func desiredReplicas(deployment *appsv1.Deployment) int32 {
	return ptr.Deref(deployment.Spec.Replicas, 1)
}
