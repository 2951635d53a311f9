//go:build start

package follow

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// Follow calls handle for each ConfigMap of the namespace, then for each change, until ctx ends.
func Follow(ctx context.Context, client kubernetes.Interface, namespace string,
	handle func(event watch.EventType, object *corev1.ConfigMap),
) error {
	list, err := client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		handle(watch.Added, &list.Items[i])
	}
	// TODO: watch, from where the list ends, and go on when the watch ends.
	<-ctx.Done()
	return nil
}
