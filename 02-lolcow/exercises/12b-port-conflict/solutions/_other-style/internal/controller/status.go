package controller

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/my-lolcow/api/v1alpha1"
)

func setStatus(lolcow *v1alpha1.Lolcow, deployment *appsv1.Deployment, failed error) {
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: reasonOf(deployment, failed), ObservedGeneration: lolcow.Generation}
	if ready.Reason == "Serving" {
		ready.Status = metav1.ConditionTrue
	}
	if failed != nil {
		ready.Message = failed.Error()
	}
	meta.SetStatusCondition(&lolcow.Status.Conditions, ready)
}

func reasonOf(deployment *appsv1.Deployment, failed error) string {
	switch {
	case portConflict(failed):
		return "PortConflict"
	case failed != nil:
		return "Failed"
	case deployment.Status.ObservedGeneration != deployment.Generation:
		return "RollingOut"
	}
	desired, now := *deployment.Spec.Replicas, deployment.Status
	switch {
	case slices.ContainsFunc([]int32{now.Replicas, now.UpdatedReplicas, now.AvailableReplicas}, func(n int32) bool { return n != desired }):
		if progressing := condition(deployment, appsv1.DeploymentProgressing); progressing != nil && progressing.Reason == "ProgressDeadlineExceeded" {
			return progressing.Reason
		}
		return "RollingOut"
	case desired == 0:
		return "ScaledToZero"
	}
	return "Serving"
}

func condition(deployment *appsv1.Deployment, conditionType appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i, one := range deployment.Status.Conditions {
		if one.Type == conditionType {
			return &deployment.Status.Conditions[i]
		}
	}
	return nil
}

// portConflict looks for the text that the API server has for a port: that for an address is another one.
func portConflict(err error) bool {
	return err != nil && strings.Contains(err.Error(), "provided port is already allocated")
}
