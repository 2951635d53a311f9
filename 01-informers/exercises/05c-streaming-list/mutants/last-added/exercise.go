package streaming

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// Follow calls handle for each ConfigMap of the namespace, then synced, then handle for each change, until ctx ends.
func Follow(ctx context.Context, client kubernetes.Interface, namespace string,
	handle func(event watch.EventType, object *corev1.ConfigMap), synced func(),
) error {
	version := ""
	for ctx.Err() == nil {
		options := metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true}
		if version == "" {
			options.SendInitialEvents = new(true)
			options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
		}
		watcher, err := client.CoreV1().ConfigMaps(namespace).Watch(ctx, options)
		if err != nil {
			pause(ctx)
			continue
		}
		for event := range watcher.ResultChan() {
			object, ok := event.Object.(*corev1.ConfigMap)
			if !ok {
				break
			}
			if event.Type != watch.Bookmark {
				version = object.ResourceVersion
				handle(event.Type, object)
			} else if object.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
				synced()
			} else {
				version = object.ResourceVersion
			}
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
