package bothsynced

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// Start counts the ConfigMaps of the factory's namespace, and calls begin when all that are there have been counted.
func Start(ctx context.Context, factory informers.SharedInformerFactory, count func(difference int), begin func()) error {
	registration, err := factory.Core().V1().ConfigMaps().TypedInformer().AddTypedEventHandler(
		coreinformers.ConfigMapHandlerFuncs{
			AddFunc:    func(*corev1.ConfigMap) { count(1) },
			DeleteFunc: func(coreinformers.DeletedConfigMap) { count(-1) },
		})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return errors.New("the context ended before the first count was complete")
	}
	begin()
	return nil
}
