package tombstone

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// Keep adds handlers to an informer for ConfigMaps of one namespace. They keep the entries outside equal to the cluster.
func Keep(informer cache.SharedIndexInformer, put func(name string, uid types.UID), remove func(name string)) error {
	look := func(object any) {
		key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
		if err != nil {
			return
		}
		_, name, err := cache.SplitMetaNamespaceKey(key)
		if err != nil {
			return
		}
		current, found, err := informer.GetStore().GetByKey(key)
		if configMap, ok := current.(*corev1.ConfigMap); err == nil && found && ok {
			put(name, configMap.UID)
			return
		}
		remove(name)
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    look,
		UpdateFunc: func(_, object any) { look(object) },
		DeleteFunc: look,
	})
	return err
}
