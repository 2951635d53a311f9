package survive

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Follow calls handle for each ConfigMap of the namespace, then for each change, until ctx ends.
func Follow(ctx context.Context, client kubernetes.Interface, namespace string,
	handle func(event watch.EventType, object *corev1.ConfigMap),
) error {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	_, err := factory.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { handle(watch.Added, object.(*corev1.ConfigMap)) },
		UpdateFunc: func(before, object any) {
			// After a new list every object is reported, also one that has not changed.
			if before.(*corev1.ConfigMap).ResourceVersion != object.(*corev1.ConfigMap).ResourceVersion {
				handle(watch.Modified, object.(*corev1.ConfigMap))
			}
		},
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			handle(watch.Deleted, object.(*corev1.ConfigMap))
		},
	})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	<-ctx.Done()
	factory.Shutdown()
	return nil
}
