package slimcache

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Slim lets the informer, which has not started yet, keep little of each ConfigMap. The function that it returns sets the label
// "seen" of a ConfigMap.
func Slim(informer cache.SharedIndexInformer, client kubernetes.Interface) (func(ctx context.Context, namespace, name, value string) error, error) {
	return func(ctx context.Context, namespace, name, value string) error {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{"seen": value}}})
		if err != nil {
			return err
		}
		_, err = client.CoreV1().ConfigMaps(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}, informer.SetTransform(slim)
}

// slim drops what is not read. It may be called again with what it has returned.
func slim(object any) (any, error) {
	configMap, ok := object.(*corev1.ConfigMap)
	if !ok {
		return nil, fmt.Errorf("transforming a %T", object)
	}
	if _, counted := configMap.Annotations["bytes"]; !counted || configMap.Data != nil {
		bytes := 0
		for _, value := range configMap.Data {
			bytes += len(value)
		}
		metav1.SetMetaDataAnnotation(&configMap.ObjectMeta, "bytes", strconv.Itoa(bytes))
	}
	configMap.Data, configMap.BinaryData, configMap.ManagedFields = nil, nil, nil
	return configMap, nil
}
