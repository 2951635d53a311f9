package bothsynced

import (
	"context"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// Start counts the ConfigMaps of the factory's namespace, and calls begin when all that are there have been counted.
func Start(ctx context.Context, factory informers.SharedInformerFactory, count func(difference int), begin func()) error {
	informer := factory.Core().V1().ConfigMaps().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { count(1) },
		DeleteFunc: func(any) { count(-1) },
	})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	time.Sleep(500 * time.Millisecond)
	begin()
	return nil
}
