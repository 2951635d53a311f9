package lesson

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pod returns a pod that stays as it is: it waits for a scheduler that no cluster has, so no kubelet
// starts it and nothing writes to it.
func Pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			SchedulerName: "nobody",
			Containers:    []corev1.Container{{Name: "main", Image: "example.com/none"}},
		},
	}
}

// CreatePods creates pods of these names, one after the other, so that their versions rise in this order.
func (w *World) CreatePods(ctx context.Context, names ...string) error {
	for _, name := range names {
		if _, err := w.Client.CoreV1().Pods(w.Namespace).Create(ctx, Pod(name), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating the pod %s: %w", name, err)
		}
	}
	return nil
}

// DeletePods deletes the pods of these names. A watch sees two events of each: the server first sets the
// deletionTimestamp (MODIFIED) and then, as no kubelet has the pod, deletes it (DELETED).
func (w *World) DeletePods(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := w.Client.CoreV1().Pods(w.Namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("deleting the pod %s: %w", name, err)
		}
	}
	return nil
}
