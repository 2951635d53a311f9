package status

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/generated/clientset/versioned"
)

// WriteStatus writes the status of the Foo if it has changed.
func WriteStatus(ctx context.Context, client versioned.Interface, foo *v1alpha1.Foo, deployment *appsv1.Deployment) error {
	updated := *foo
	updated.Status.ObservedGeneration = foo.Generation
	updated.Status.AvailableReplicas = deployment.Status.AvailableReplicas
	apimeta.SetStatusCondition(&updated.Status.Conditions, ready(foo, deployment))
	if apiequality.Semantic.DeepEqual(foo.Status, updated.Status) {
		return nil
	}
	_, err := client.FooV1alpha1().Foos(foo.Namespace).UpdateStatus(ctx, &updated, metav1.UpdateOptions{})
	return err
}

// ready is the condition for what the Deployment says.
func ready(foo *v1alpha1.Foo, deployment *appsv1.Deployment) metav1.Condition {
	replicas, seen := int32(1), deployment.Status
	if foo.Spec.Replicas != nil {
		replicas = *foo.Spec.Replicas
	}
	condition := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRollingOut,
		Message:            fmt.Sprintf("%d of %d replicas are available", seen.AvailableReplicas, replicas),
		ObservedGeneration: foo.Generation,
	}
	if seen.ObservedGeneration >= deployment.Generation && seen.UpdatedReplicas == replicas && seen.AvailableReplicas == replicas {
		condition.Status, condition.Reason = metav1.ConditionTrue, v1alpha1.ReasonAvailable
	}
	return condition
}
