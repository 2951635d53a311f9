/*
Copyright 2026.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package controller

import (
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/my-lolcow/api/v1alpha1"
)

// setStatus sets the condition Ready by what failed and by what the Deployment says. Conditions of others stay, and the time of the last
// transition changes with the status only.
func setStatus(lolcow *v1alpha1.Lolcow, deployment *appsv1.Deployment, failed error) {
	ready := readyCondition(deployment, failed)
	ready.ObservedGeneration = lolcow.Generation
	meta.SetStatusCondition(&lolcow.Status.Conditions, ready)
}

// readyCondition decides: the first case that holds is the one that a user can act on.
func readyCondition(deployment *appsv1.Deployment, failed error) metav1.Condition {
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse}
	desired, status := desiredReplicas(deployment), deployment.Status
	current := status.ObservedGeneration >= deployment.Generation
	complete := current && status.UpdatedReplicas == desired && status.Replicas == desired && status.AvailableReplicas == desired
	switch {
	case portConflict(failed):
		ready.Reason, ready.Message = "PortConflict", failed.Error()
	case errors.Is(failed, errNameConflict):
		ready.Reason, ready.Message = "NameConflict", failed.Error()
	case errors.Is(failed, errNoGreeting):
		ready.Reason, ready.Message = "GreetingNotFound", failed.Error()
	case rejected(failed):
		ready.Reason, ready.Message = "ApplyFailed", failed.Error()
	case failed != nil:
		ready.Reason, ready.Message = "APIError", failed.Error()
	case complete && desired == 0:
		ready.Reason, ready.Message = "ScaledToZero", "no pod is desired, and none is left"
	case complete:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionTrue, "Serving", "every pod serves the greeting"
	case current && stalled(deployment) != "":
		ready.Reason, ready.Message = "ProgressDeadlineExceeded", stalled(deployment)
	default:
		ready.Reason, ready.Message = "RollingOut", "waiting until every pod is updated and available"
	}
	return ready
}

// readyOf returns the condition Ready; an empty one if there is none.
func readyOf(lolcow *v1alpha1.Lolcow) metav1.Condition {
	if ready := meta.FindStatusCondition(lolcow.Status.Conditions, "Ready"); ready != nil {
		return *ready
	}
	return metav1.Condition{}
}

func desiredReplicas(deployment *appsv1.Deployment) int32 {
	if deployment.Spec.Replicas == nil {
		return 1
	}
	return *deployment.Spec.Replicas
}

// stalled is why the rollout makes no progress; empty if it does.
func stalled(deployment *appsv1.Deployment) string {
	for _, condition := range deployment.Status.Conditions {
		if condition.Type == appsv1.DeploymentProgressing && condition.Status == corev1.ConditionFalse {
			return condition.Message
		}
	}
	return ""
}
