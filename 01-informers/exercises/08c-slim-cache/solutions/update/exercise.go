package slimcache

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
)

// Slim lets the informer, which has not started yet, keep little of each ConfigMap. The function that it returns sets the label
// "seen" of a ConfigMap.
func Slim(informer cache.SharedIndexInformer, client kubernetes.Interface) (func(ctx context.Context, namespace, name, value string) error, error) {
	err := informer.SetTransform(func(object any) (any, error) {
		configMap, whole := object.(*corev1.ConfigMap)
		if !whole {
			return object, nil
		}
		reduced := &metav1.PartialObjectMetadata{ObjectMeta: *configMap.ObjectMeta.DeepCopy()}
		reduced.ManagedFields = nil
		bytes := 0
		for _, value := range configMap.Data {
			bytes += len(value)
		}
		metav1.SetMetaDataAnnotation(&reduced.ObjectMeta, "bytes", strconv.Itoa(bytes))
		return reduced, nil
	})
	return func(ctx context.Context, namespace, name, value string) error {
		return retry.RetryOnConflict(retry.DefaultRetry, func() error {
			whole, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			metav1.SetMetaDataLabel(&whole.ObjectMeta, "seen", value)
			_, err = client.CoreV1().ConfigMaps(namespace).Update(ctx, whole, metav1.UpdateOptions{})
			return err
		})
	}, err
}
