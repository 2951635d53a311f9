//go:build start

package streaming

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// Follow calls handle for each ConfigMap of the namespace, then synced, then handle for each change, until ctx ends.
func Follow(ctx context.Context, client kubernetes.Interface, namespace string,
	handle func(event watch.EventType, object *corev1.ConfigMap), synced func(),
) error {
	// TODO: request a streaming list, and go on when the watch ends.
	watcher, err := client.CoreV1().ConfigMaps(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if object, ok := event.Object.(*corev1.ConfigMap); ok {
			handle(event.Type, object)
		}
	}
	return nil
}
