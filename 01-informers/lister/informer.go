package main

import (
	"context"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listerscorev1 "k8s.io/client-go/listers/core/v1"

	"example.com/workbook/01-informers/internal/lesson"
)

// informer is a factory with one informer, and the lister that reads from it.
type informer struct {
	factory informers.SharedInformerFactory
	lister  listerscorev1.PodLister
	cancel  context.CancelFunc
}

// newInformer returns an informer for the Pods of one namespace. The call of Lister creates it in the factory.
func newInformer(client kubernetes.Interface, namespace string) *informer {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	return &informer{factory: factory, lister: factory.Core().V1().Pods().Lister(), cancel: func() {}}
}

// start starts the informer, and returns when its cache has synced.
func (i *informer) start(ctx context.Context) {
	running, cancel := context.WithCancel(ctx)
	i.cancel = cancel
	i.factory.StartWithContext(running)
	waiting, done := context.WithTimeout(ctx, lesson.Patience)
	defer done()
	lesson.Check(i.factory.WaitForCacheSyncWithContext(waiting).AsError())
}

// stop ends the watch, and waits for it. The store keeps its objects.
func (i *informer) stop() {
	i.cancel()
	i.factory.Shutdown()
}
