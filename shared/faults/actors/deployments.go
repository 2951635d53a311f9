// Package actors has the parts of Kubernetes that run beside an API server, one step at a time, for package faults.
package actors

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"example.com/workbook/shared/faults"
)

// Deployments rolls Deployments out: first it has observed the spec, and then all replicas are updated and available. There
// are neither ReplicaSets nor pods.
type Deployments struct{}

// Name is that of the controller.
func (Deployments) Name() string { return "deployment-controller" }

// Act brings one Deployment one step further.
func (Deployments) Act(ctx context.Context, w *faults.State) (bool, error) {
	deployments, err := faults.All[appsv1.Deployment](w)
	if err != nil {
		return false, err
	}
	for _, one := range deployments {
		replicas := ptr.Deref(one.Spec.Replicas, 1)
		next := appsv1.DeploymentStatus{
			ObservedGeneration: one.Generation, Replicas: replicas, UpdatedReplicas: replicas,
			ReadyReplicas: replicas, AvailableReplicas: replicas,
		}
		if one.Status.ObservedGeneration != one.Generation {
			next.ReadyReplicas, next.AvailableReplicas = 0, 0
			next.UnavailableReplicas = replicas
		}
		is := one.Status
		if one.DeletionTimestamp != nil || is.ObservedGeneration == next.ObservedGeneration && is.Replicas == next.Replicas && is.AvailableReplicas == next.AvailableReplicas {
			continue
		}
		one.Status = next
		return true, w.Client.Status().Update(ctx, one)
	}
	return false, nil
}
