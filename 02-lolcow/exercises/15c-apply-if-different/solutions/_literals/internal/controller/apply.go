package controller

import (
	"context"
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/my-lolcow/api/v1alpha1"
)

const (
	manager = client.FieldOwner("lolcow-controller")
	// createOnlyResourceVersion is one that no object has: an apply with it creates, or fails with a Conflict.
	createOnlyResourceVersion = "1"
)

// applyDeployment returns the Deployment as it was read, or, if it had to be written, as the API server has returned it.
func (r *LolcowReconciler) applyDeployment(ctx context.Context, lolcow *v1alpha1.Lolcow) (*appsv1.Deployment, error) {
	desired := desiredDeployment(lolcow)
	var live appsv1.Deployment
	err := r.Get(ctx, client.ObjectKeyFromObject(lolcow), &live)
	switch {
	case apierrors.IsNotFound(err):
		desired.ResourceVersion = new(createOnlyResourceVersion)
		if err := r.Apply(ctx, desired, manager); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	case !metav1.IsControlledBy(&live, lolcow):
		return nil, &notOurs{"Deployment", live.Name}
	default:
		if ours, err := appsv1ac.ExtractDeployment(&live, string(manager)); err != nil || equality.Semantic.DeepEqual(ours, desired) {
			return &live, err
		}
		desired.UID = &live.UID
		if err := r.Apply(ctx, desired, manager, client.ForceOwnership); err != nil {
			return nil, err
		}
	}
	// The response was decoded into the apply configuration: with the present generation, and the status.
	response, err := json.Marshal(desired)
	if err != nil {
		return nil, err
	}
	written := &appsv1.Deployment{}
	return written, json.Unmarshal(response, written)
}

func (r *LolcowReconciler) applyService(ctx context.Context, lolcow *v1alpha1.Lolcow) error {
	desired := desiredService(lolcow)
	var live corev1.Service
	err := r.Get(ctx, client.ObjectKeyFromObject(lolcow), &live)
	switch {
	case apierrors.IsNotFound(err):
		desired.ResourceVersion = new(createOnlyResourceVersion)
		return r.Apply(ctx, desired, manager)
	case err != nil:
		return err
	case !metav1.IsControlledBy(&live, lolcow):
		return &notOurs{"Service", live.Name}
	}
	if ours, err := corev1ac.ExtractService(&live, string(manager)); err != nil || equality.Semantic.DeepEqual(ours, desired) {
		return err
	}
	desired.UID = &live.UID
	return r.Apply(ctx, desired, manager, client.ForceOwnership)
}
