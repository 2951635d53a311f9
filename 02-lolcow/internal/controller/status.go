package controller

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// observation is what one reconciliation observed. It is all that the status is computed from.
type observation struct {
	// now is when it was observed.
	now time.Time
	// deployment is the Lolcow's Deployment; nil if there is none that it owns.
	deployment *appsv1.Deployment
	// service is the Lolcow's Service; nil if there is none that it owns.
	service *corev1.Service
	// pods are the Lolcow's pods.
	pods []corev1.Pod
	// failure is why a dependent could not be applied, or not be read; nil if all could.
	failure *failure
}

// desiredStatus computes the status from the observation. Two things may come from the old status: the greeting, as
// long as a rollout has not finished, and the time of a condition's last change.
func desiredStatus(lolcow *v1alpha1.Lolcow, observed observation) v1alpha1.LolcowStatus {
	status := *lolcow.Status.DeepCopy()
	status.ObservedGeneration = lolcow.Generation

	switch {
	case observed.deployment == nil || observed.deployment.Status.Replicas == 0:
		status.Greeting = ""
	case rolledOut(observed.deployment):
		status.Greeting = servedGreeting(observed.deployment)
	}
	status.Port = servedPort(observed.service)

	ready := readyCondition(observed)
	ready.ObservedGeneration = lolcow.Generation
	ready.LastTransitionTime = metav1.NewTime(observed.now)
	setCondition(&status.Conditions, ready)
	return status
}

// readyCondition decides the condition Ready. If several cases are true, the first one wins: it explains those below it, or makes them irrelevant.
func readyCondition(observed observation) metav1.Condition {
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}
	notStarted := startFailureOf(podsOfTemplate(observed.deployment, observed.pods), observed.now)
	notCreated := deploymentCondition(observed.deployment, appsv1.DeploymentReplicaFailure, corev1.ConditionTrue)
	stalled := deploymentCondition(observed.deployment, appsv1.DeploymentProgressing, corev1.ConditionFalse)
	switch {
	// 1. A dependent could not be applied. The cases below would describe the result of an earlier spec.
	case observed.failure != nil:
		ready.Reason, ready.Message = observed.failure.reason, observed.failure.message
	// 2. The rollout is complete, but no replica is desired, so no pod serves the greeting.
	case rolledOut(observed.deployment) && desiredReplicas(observed.deployment) == 0:
		ready.Reason, ready.Message = v1alpha1.ReasonScaledToZero, "no replica is desired, and none runs"
	// 3. The rollout is complete: every pod is available. A pod that cannot pull its image is not.
	case rolledOut(observed.deployment) && observed.service != nil:
		ready.Status = metav1.ConditionTrue
		ready.Reason, ready.Message = v1alpha1.ReasonServing, "every replica serves the greeting"
	// 4. Pods are missing, and the kubelet or the scheduler reports why.
	case notStarted != nil:
		ready.Reason, ready.Message = notStarted.reason, notStarted.message
	// 5. Pods are missing, because a quota or the Pod Security level of the namespace does not permit them.
	case notCreated != nil:
		ready.Reason, ready.Message = v1alpha1.ReasonPodsNotCreated, notCreated.Message
	// 6. Pods are missing for longer than the Deployment allows, and no status says why.
	case stalled != nil:
		ready.Reason, ready.Message = v1alpha1.ReasonProgressDeadlineExceeded, stalled.Message
	// 7. The rollout is in progress. The message contains no numbers, because each new number would be another write.
	default:
		ready.Reason, ready.Message = v1alpha1.ReasonRollingOut, "waiting for every replica to be replaced and available"
	}
	return ready
}

// transitions are the changes of the condition Ready. A change to RollingOut has no type, and so there is no Event for it:
// each change that a user makes leads to a rollout, which the user expects.
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
	return []transition{{eventType, is}}
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

// maxGreeting bounds a greeting, in characters: the API server accepts no more in a spec, and no more in a status.
const maxGreeting = 1024

// servedGreeting is the greeting that the pods of a rolled-out Deployment serve. An admission webhook may have made it longer
// than one in a spec can be.
func servedGreeting(deployment *appsv1.Deployment) string {
	if desiredReplicas(deployment) == 0 {
		return ""
	}
	greeting := []rune(greetingFromArgs(ourContainer(deployment.Spec.Template.Spec).Args))
	if len(greeting) > maxGreeting {
		return string(greeting[:maxGreeting-1]) + "…"
	}
	return string(greeting)
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
