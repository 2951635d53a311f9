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
	seen := map[string]string{}
	for ctx.Err() == nil {
		list, err := configMaps.List(ctx, metav1.ListOptions{})
		if err != nil {
			pause(ctx)
			continue
		}
		for i := range list.Items {
			object := &list.Items[i]
			if seen[object.Name] == "" {
				handle(watch.Added, object)
			} else if seen[object.Name] != object.ResourceVersion {
				handle(watch.Modified, object)
			}
			seen[object.Name] = object.ResourceVersion
		}
		watcher, err := configMaps.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		if err != nil {
			pause(ctx)
			continue
		}
		for event := range watcher.ResultChan() {
			object, ok := event.Object.(*corev1.ConfigMap)
			if !ok {
				break
			}
			seen[object.Name] = object.ResourceVersion
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
