//go:build start

package slimcache

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Slim lets the informer, which has not started yet, keep little of each ConfigMap. The function that it returns sets the label
// "seen" of a ConfigMap.
func Slim(informer cache.SharedIndexInformer, client kubernetes.Interface) (func(ctx context.Context, namespace, name, value string) error, error) {
	// TODO: set a transform. Then what is in the cache must not be written any more.
	return func(ctx context.Context, namespace, name, value string) error {
		object, _, err := informer.GetStore().GetByKey(namespace + "/" + name)
		if err != nil {
			return err
		}
		cached, ok := object.(*corev1.ConfigMap)
		if !ok {
			return fmt.Errorf("the cache has no ConfigMap %s", name)
		}
		updated := cached.DeepCopy()
		metav1.SetMetaDataLabel(&updated.ObjectMeta, "seen", value)
		_, err = client.CoreV1().ConfigMaps(namespace).Update(ctx, updated, metav1.UpdateOptions{})
		return err
	}, nil
}
