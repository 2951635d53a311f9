package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// informerName is under what the second factory's figures are published.
const informerName = "sharedinformer-lesson"

// strip is a transform: it leaves what identifies a ConfigMap. It may change the object in place, as nobody
// else has it yet. It has to be idempotent: objects of a watch-list pass through it twice, once in the
// reflector's temporary store (NewStore with WithTransformer, in Reflector.watchList) and once in the queue
// (RealFIFO.addReplaceToItemsLocked). A tombstone is not passed to it.
func strip(object any) (any, error) {
	configMap, ok := object.(*corev1.ConfigMap)
	if !ok {
		return nil, fmt.Errorf("transforming a %T: want a ConfigMap", object)
	}
	configMap.ManagedFields = nil
	configMap.Data, configMap.BinaryData = nil, nil
	return configMap, nil
}

func (s *session) transform(ctx context.Context) (err error) {
	s.Printf("7. A transform, and an informer with a name\n")
	if err := s.create(ctx, "large", strings.Repeat("x", 100<<10)); err != nil {
		return err
	}
	cache.SetInformerMetricsProvider(figures) // only the first call in a process counts
	name, err := cache.NewInformerName(informerName)
	if err != nil {
		return fmt.Errorf("naming the informer: %w", err)
	}
	_, again := cache.NewInformerName(informerName)

	ctx, cancel := context.WithCancel(ctx)
	factory := informers.NewSharedInformerFactoryWithOptions(s.watched, 0,
		informers.WithNamespace(s.Namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = label }),
		informers.WithTransform(strip),
		informers.WithInformerName(name))
	defer factory.Shutdown() // gives the name back, too
	defer cancel()
	lister := factory.Core().V1().ConfigMaps().Lister()
	factory.StartWithContext(ctx)
	if err := factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		return err
	}
	whole, err := s.configMaps().Get(ctx, "large", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the large ConfigMap: %w", err)
	}
	cached, err := lister.ConfigMaps(s.Namespace).Get("large")
	if err != nil {
		return fmt.Errorf("looking the large ConfigMap up: %w", err)
	}
	if cached.Size() >= 1<<10 {
		return errors.New("the transform left more than 1 kB")
	}
	s.Printf("   on the server: %d kB; in memory: less than 1 kB, without data (%d keys) and managedFields (%d entries)\n",
		whole.Size()>>10, len(cached.Data), len(cached.ManagedFields))
	s.Printf("   the name can be had twice: %t; its metrics: %s\n", again == nil, strings.Join(figures.of(informerName), ", "))
	return nil
}
