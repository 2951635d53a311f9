package controller

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/my-lolcow/api/v1alpha1"
)

// desiredStatus says how a Deployment is, in the order of kubectl rollout status.
func desiredStatus(deployment *appsv1.Deployment) metav1.Condition {
	desired, status := *deployment.Spec.Replicas, deployment.Status
	if status.ObservedGeneration < deployment.Generation {
		return notReady("RollingOut", "the Deployment controller has not observed the last change")
	}
	for _, one := range status.Conditions {
		if one.Type == appsv1.DeploymentProgressing && one.Status == corev1.ConditionFalse {
			return notReady("ProgressDeadlineExceeded", one.Message)
		}
	}
	switch {
	case status.UpdatedReplicas < desired:
		return notReady("RollingOut", fmt.Sprintf("%d of %d pods are up to date", status.UpdatedReplicas, desired))
	case status.Replicas > desired:
		return notReady("RollingOut", fmt.Sprintf("%d pods have to end", status.Replicas-desired))
	case status.AvailableReplicas < desired:
		return notReady("RollingOut", fmt.Sprintf("%d of %d pods are available", status.AvailableReplicas, desired))
	case desired == 0:
		return notReady("ScaledToZero", "")
	}
	return metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Serving"}
}

func notReady(reason, message string) metav1.Condition {
	return metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// applyStatus applies the condition if it differs. The API server merges it into the list by its type.
func (r *LolcowReconciler) applyStatus(ctx context.Context, lolcow *v1alpha1.Lolcow, ready metav1.Condition) error {
	ready.ObservedGeneration = lolcow.Generation
	conditions := slices.Clone(lolcow.Status.Conditions)
	if !meta.SetStatusCondition(&conditions, ready) {
		return nil
	}
	// With the time of the last transition, which is the old one where the status has stayed.
	entry, err := runtime.DefaultUnstructuredConverter.ToUnstructured(meta.FindStatusCondition(conditions, ready.Type))
	if err != nil {
		return err
	}
	status := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{entry}}}}
	status.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Lolcow"))
	status.SetName(lolcow.Name)
	status.SetNamespace(lolcow.Namespace)
	return r.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(status), client.FieldOwner("lolcow"), client.ForceOwnership)
}
