package tombstone

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// Keep adds handlers to an informer for ConfigMaps of one namespace. They keep the entries outside equal to the cluster.
func Keep(informer cache.SharedIndexInformer, put func(name string, uid types.UID), remove func(name string)) error {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if configMap, ok := object.(*corev1.ConfigMap); ok {
				put(configMap.Name, configMap.UID)
			}
		},
		UpdateFunc: func(before, after any) {
			old, ok := before.(*corev1.ConfigMap)
			if configMap, isOne := after.(*corev1.ConfigMap); ok && isOne && old.UID != configMap.UID {
				put(configMap.Name, configMap.UID)
			}
		},
		DeleteFunc: func(object any) {
			key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
			if err != nil {
				return
			}
			if _, name, err := cache.SplitMetaNamespaceKey(key); err == nil {
				remove(name)
			}
		},
	})
	return err
}
