package watchthecopy

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Watch enqueues the name of an original when something happens to the original or to its copy. It returns when all that is there
// has been enqueued.
func Watch(ctx context.Context, client kubernetes.Interface, namespace string, enqueue func(original string)) error {
	originals := selected(client, namespace, "loud=yes")
	registration, err := originals.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { enqueue(object.(*corev1.ConfigMap).Name) },
		UpdateFunc: func(before, after any) {
			if old, current := before.(*corev1.ConfigMap), after.(*corev1.ConfigMap); old.ResourceVersion != current.ResourceVersion {
				enqueue(current.Name)
			}
		},
	})
	if err != nil {
		return err
	}
	of := func(object any) {
		key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
		if err != nil {
			return
		}
		if _, name, err := cache.SplitMetaNamespaceKey(key); err == nil {
			enqueue(name)
		}
	}
	copies := selected(client, namespace, "loud-copy=yes")
	second, err := copies.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    of,
		UpdateFunc: func(before, after any) { of(before); of(after) },
		DeleteFunc: of,
	})
	if err != nil {
		return err
	}
	originals.StartWithContext(ctx)
	copies.StartWithContext(ctx)
	if !cache.WaitFor(ctx, "", registration.HasSyncedChecker(), second.HasSyncedChecker()) {
		return ctx.Err()
	}
	return nil
}

// selected makes informers for the objects with a label.
func selected(client kubernetes.Interface, namespace, label string) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = label }))
}
