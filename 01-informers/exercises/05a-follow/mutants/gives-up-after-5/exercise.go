package follow

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// Follow calls handle for each ConfigMap of the namespace, then for each change, until ctx ends.
func Follow(ctx context.Context, client kubernetes.Interface, namespace string,
	handle func(event watch.EventType, object *corev1.ConfigMap),
) error {
	configMaps := client.CoreV1().ConfigMaps(namespace)
	list, err := configMaps.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		handle(watch.Added, &list.Items[i])
	}
	version, failures := list.ResourceVersion, 0
	for ctx.Err() == nil {
		watcher, err := configMaps.Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			if failures++; failures == 5 {
				return err
			}
			pause(ctx)
			continue
		}
		failures = 0
		for event := range watcher.ResultChan() {
			object, ok := event.Object.(*corev1.ConfigMap)
			if !ok {
				break
			}
			version = object.ResourceVersion
			handle(event.Type, object)
		}
		watcher.Stop()
	}
	return nil
}

// pause waits a moment, or until ctx ends.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(50 * time.Millisecond):
	}
}
