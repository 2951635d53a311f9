package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// observation is what one reconciliation observed. It is all that the status is computed from.
type observation struct {
	// deployment is the Lolcow's Deployment; nil if there is none that it owns.
	deployment *appsv1.Deployment
	// service is the Lolcow's Service; nil if there is none that it owns.
	service *corev1.Service
	// pods are the Lolcow's pods.
	pods []corev1.Pod
	// failure is why a dependent could not be applied, or not be read; nil if all could.
	failure *failure
}

// desiredStatus is the status that the observation amounts to. The only thing it takes from the old status
// is what must not change yet: the greeting during a rollout, and when a condition last changed.
func desiredStatus(lolcow *v1alpha1.Lolcow, observed observation, now metav1.Time) v1alpha1.LolcowStatus {
	status := *lolcow.Status.DeepCopy()
	status.ObservedGeneration = lolcow.Generation

	switch {
	case observed.deployment == nil:
		status.Greeting = ""
	case rolledOut(observed.deployment):
		status.Greeting = servedGreeting(observed.deployment)
	}
	status.Port = servedPort(observed.service)

	ready := readyCondition(observed)
	ready.ObservedGeneration = lolcow.Generation
	ready.LastTransitionTime = now
	setCondition(&status.Conditions, ready)
	return status
}

// readyCondition decides the condition Ready: the first case that holds is the one a user can act on.
func readyCondition(observed observation) metav1.Condition {
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}
	notStarted := startFailureOf(observed.pods)
	notCreated := deploymentCondition(observed.deployment, appsv1.DeploymentReplicaFailure, corev1.ConditionTrue)
	stalled := deploymentCondition(observed.deployment, appsv1.DeploymentProgressing, corev1.ConditionFalse)
	switch {
	// 1. A dependent could not be applied: nothing below can be as the spec wants it.
	case observed.failure != nil:
		ready.Reason, ready.Message = observed.failure.reason, observed.failure.message
	// 2. All pods are as desired, and there are none.
	case rolledOut(observed.deployment) && desiredReplicas(observed.deployment) == 0:
		ready.Reason, ready.Message = v1alpha1.ReasonScaledToZero, "no replica is desired, and none runs"
	// 3. All pods are as desired. A pod that cannot pull its image does not count as available.
	case rolledOut(observed.deployment) && observed.service != nil:
		ready.Status = metav1.ConditionTrue
		ready.Reason, ready.Message = v1alpha1.ReasonServing, "every replica serves the greeting"
	// 4. Pods are missing, and the kubelet or the scheduler says why.
	case notStarted != nil:
		ready.Reason, ready.Message = notStarted.reason, notStarted.message
	// 5. Pods are missing, and cannot be created: a quota, the namespace's Pod Security level.
	case notCreated != nil:
		ready.Reason, ready.Message = v1alpha1.ReasonPodsNotCreated, notCreated.Message
	// 6. Pods are missing, and nobody says why, for longer than the Deployment allows.
	case stalled != nil:
		ready.Reason, ready.Message = v1alpha1.ReasonProgressDeadlineExceeded, stalled.Message
	// 7. Pods are missing, and will come. No numbers in the message: each would be a write.
	default:
		ready.Reason, ready.Message = v1alpha1.ReasonRollingOut, "waiting for every replica to be replaced and available"
	}
	return ready
}

// transitions are the changes of the condition Ready. A rollout is part of every change that a user makes and has just
// asked for: it is a condition, but not an Event.
func transitions(before, after v1alpha1.LolcowStatus) []transition {
	was, is := conditionOf(before.Conditions, v1alpha1.ConditionReady), conditionOf(after.Conditions, v1alpha1.ConditionReady)
	if was.Status == is.Status && was.Reason == is.Reason {
		return nil
	}
	eventType := corev1.EventTypeWarning
	switch is.Reason {
	case v1alpha1.ReasonRollingOut:
		eventType = ""
	case v1alpha1.ReasonServing, v1alpha1.ReasonScaledToZero:
		eventType = corev1.EventTypeNormal
	}
	return []transition{{eventType: eventType, reason: is.Reason, message: is.Message}}
}

// rolledOut tells whether every pod of the Deployment is of its present template and available.
// The status counts only if the Deployment's controller wrote it for the present generation.
func rolledOut(deployment *appsv1.Deployment) bool {
	if deployment == nil {
		return false
	}
	desired, status := desiredReplicas(deployment), deployment.Status
	return status.ObservedGeneration >= deployment.Generation &&
		status.UpdatedReplicas == desired && status.AvailableReplicas == desired && status.Replicas == desired
}

func desiredReplicas(deployment *appsv1.Deployment) int32 {
	return ptr.Deref(deployment.Spec.Replicas, 1)
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

// servedGreeting is the greeting that the pods of a rolled-out Deployment serve.
func servedGreeting(deployment *appsv1.Deployment) string {
	if desiredReplicas(deployment) == 0 {
		return ""
	}
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if container.Name == containerName {
			return greetingFromArgs(container.Args)
		}
	}
	return ""
}

// servedPort is the node port of the Service's port of our name; 0 if it has none. Another writer may have added ports.
func servedPort(service *corev1.Service) int32 {
	if service == nil {
		return 0
	}
	for _, port := range service.Spec.Ports {
		if port.Name == portName {
			return port.NodePort
		}
	}
	return 0
}
