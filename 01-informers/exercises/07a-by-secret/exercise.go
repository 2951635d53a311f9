//go:build start

package secret

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// BySecret adds an index to an informer for Pods. find returns the keys of the Pods that use a Secret.
func BySecret(informer cache.SharedIndexInformer) (find func(namespace, name string) ([]string, error), err error) {
	err = informer.AddIndexers(cache.Indexers{"by-secret": func(object any) ([]string, error) {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return nil, nil
		}
		var values []string
		for _, volume := range pod.Spec.Volumes {
			if volume.Secret != nil {
				values = append(values, pod.Namespace+"/"+volume.Secret.SecretName)
			}
		}
		// TODO: the other places where a Pod names a Secret.
		return values, nil
	}})
	// TODO: find the Pods by the index.
	return func(namespace, name string) ([]string, error) { return nil, nil }, err
}
