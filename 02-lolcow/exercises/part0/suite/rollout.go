package suite

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// pods are the numbers in the status of a Deployment.
type pods struct{ replicas, updated, ready, available int32 }

// Reasons of a Deployment's condition Progressing, beside the deadline.
const (
	replacing = "ReplicaSetUpdated"
	replaced  = "NewReplicaSetAvailable"
)

// simulate does what the Deployment controller does: it writes the status, for the present generation.
func (e *env) simulate(what string, deployment *appsv1.Deployment, now pods, progress string) {
	e.Event("the Deployment controller: %s", what)
	desired := *deployment.Spec.Replicas
	progressing := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: progress}
	if progress == deadline {
		progressing.Status, progressing.Message = corev1.ConditionFalse, "ReplicaSet has timed out progressing."
	}
	available := appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"}
	if now.available < desired {
		available.Status, available.Reason = corev1.ConditionFalse, "MinimumReplicasUnavailable"
	}
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation, Replicas: now.replicas, UpdatedReplicas: now.updated, ReadyReplicas: now.ready,
		AvailableReplicas: now.available, UnavailableReplicas: max(0, desired-now.available),
		Conditions: []appsv1.DeploymentCondition{available, progressing},
	}
	e.must(e.client.Status().Update(e.Context(), deployment), "simulating the Deployment controller")
}

// rollOut does what the Deployment controller and the kubelets do: all pods of a Deployment are there and available.
func (e *env) rollOut(deployment *appsv1.Deployment) {
	n := *deployment.Spec.Replicas
	e.simulate("all pods are available", deployment, pods{n, n, n, n}, replaced)
}

// stall does what the Deployment controller does when a rollout makes no progress.
func (e *env) stall(deployment *appsv1.Deployment) {
	e.simulate("the rollout makes no progress", deployment, pods{replicas: 1, updated: 1}, deadline)
}
