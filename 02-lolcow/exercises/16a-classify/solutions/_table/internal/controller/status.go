package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// failedCondition is the condition Ready for a request that failed.
func failedCondition(reason string, err error) metav1.Condition {
	return metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: reason, Message: err.Error()}
}

// rolloutCondition is the condition Ready by what the Deployment says.
func rolloutCondition(deployment *appsv1.Deployment) metav1.Condition {
	status, reason := metav1.ConditionFalse, "RollingOut"
	desired, now := *deployment.Spec.Replicas, deployment.Status
	if now.ObservedGeneration == deployment.Generation {
		switch {
		case now.Replicas == desired && now.UpdatedReplicas == desired && now.AvailableReplicas == desired:
			reason = "ScaledToZero"
			if desired > 0 {
				status, reason = metav1.ConditionTrue, "Serving"
			}
		case progressing(deployment) == corev1.ConditionFalse:
			reason = "ProgressDeadlineExceeded"
		}
	}
	return metav1.Condition{Type: "Ready", Status: status, Reason: reason}
}

// progressing is the status of the condition Progressing of a Deployment.
func progressing(deployment *appsv1.Deployment) corev1.ConditionStatus {
	for _, one := range deployment.Status.Conditions {
		if one.Type == appsv1.DeploymentProgressing {
			return one.Status
		}
	}
	return corev1.ConditionUnknown
}
