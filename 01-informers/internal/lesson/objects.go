package lesson

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Label selects the ConfigMaps of a lesson. A cluster creates one of its own in every namespace, kube-root-ca.crt.
const Label = "example.com/lesson=true"

// ConfigMap returns a ConfigMap with Label and one value.
func ConfigMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"example.com/lesson": "true"}},
		Data:       map[string]string{"value": value},
	}
}

// ConfigMaps returns a client for the ConfigMaps in the lesson's namespace.
func (e *Env) ConfigMaps() corev1client.ConfigMapInterface {
	return e.Client.CoreV1().ConfigMaps(e.Namespace)
}

// CreateConfigMap creates a ConfigMap.
func (e *Env) CreateConfigMap(ctx context.Context, name, value string) {
	Must(e.ConfigMaps().Create(ctx, ConfigMap(name, value), metav1.CreateOptions{}))
}

// UpdateConfigMap sets the value of a ConfigMap.
func (e *Env) UpdateConfigMap(ctx context.Context, name, value string) {
	Must(e.ConfigMaps().Update(ctx, ConfigMap(name, value), metav1.UpdateOptions{}))
}

// DeleteConfigMap deletes a ConfigMap.
func (e *Env) DeleteConfigMap(ctx context.Context, name string) {
	Check(e.ConfigMaps().Delete(ctx, name, metav1.DeleteOptions{}))
}

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
