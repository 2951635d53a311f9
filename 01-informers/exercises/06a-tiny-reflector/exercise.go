//go:build start

package reflector

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Reflect keeps the store equal to the ConfigMaps of the namespace until ctx ends. It calls sleep after a request that fails.
func Reflect(ctx context.Context, client kubernetes.Interface, namespace string, store cache.Store,
	sleep func(ctx context.Context, pause time.Duration),
) {
	list, err := client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	var objects []any
	for i := range list.Items {
		objects = append(objects, &list.Items[i])
	}
	if err := store.Replace(objects, list.ResourceVersion); err != nil {
		return
	}
	// TODO: watch, go on when the watch ends, list again after a 410, and pause after a request that fails.
	<-ctx.Done()
}
