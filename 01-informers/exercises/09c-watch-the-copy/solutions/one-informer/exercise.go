package watchthecopy

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Watch enqueues the name of an original when something happens to the original or to its copy. It returns when all that is there
// has been enqueued.
func Watch(ctx context.Context, client kubernetes.Interface, namespace string, enqueue func(original string)) error {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	of := func(configMap *corev1.ConfigMap) {
		if configMap == nil {
			return
		}
		if configMap.Labels["loud"] == "yes" {
			enqueue(configMap.Name)
		}
		if owner := metav1.GetControllerOf(configMap); owner != nil && owner.Kind == "ConfigMap" {
			enqueue(owner.Name)
		}
	}
	registration, err := factory.Core().V1().ConfigMaps().TypedInformer().AddTypedEventHandler(coreinformers.ConfigMapHandlerFuncs{
		AddFunc:    of,
		UpdateFunc: func(before, after *corev1.ConfigMap) { of(before); of(after) },
		DeleteFunc: func(deleted coreinformers.DeletedConfigMap) { of(deleted.OptionalObj) },
	})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	if !cache.WaitFor(ctx, "", registration.HasSyncedChecker()) {
		return ctx.Err()
	}
	return nil
}
