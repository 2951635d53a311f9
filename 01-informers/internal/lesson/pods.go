package lesson

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pod returns a Pod that stays pending, because no scheduler has the name in its schedulerName. No kubelet
// starts it, so nothing writes to it.
func Pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			SchedulerName: "none",
			Containers:    []corev1.Container{{Name: "main", Image: "example.com/none"}},
		},
	}
}

// CreatePods creates Pods one after the other, so that their resourceVersions increase in this order.
func (e *Env) CreatePods(ctx context.Context, names ...string) {
	for _, name := range names {
		Must(e.Client.CoreV1().Pods(e.Namespace).Create(ctx, Pod(name), metav1.CreateOptions{}))
	}
}

// DeletePods deletes Pods. A watch gets two events for each: the server first sets the deletionTimestamp
// (MODIFIED) and then, because no kubelet runs the Pod, deletes it (DELETED).
func (e *Env) DeletePods(ctx context.Context, names ...string) {
	for _, name := range names {
		Check(e.Client.CoreV1().Pods(e.Namespace).Delete(ctx, name, metav1.DeleteOptions{}))
	}
}
