package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"

	"example.com/workbook/01-informers/internal/lesson"
)

// strip is a transform that keeps only the metadata of a ConfigMap, without managedFields. It may modify the object,
// because no other code has it yet. It must be idempotent, because it is called twice for an object of a streaming list: in
// the reflector's temporary store (Reflector.watchList) and in the queue (RealFIFO.addReplaceToItemsLocked). It is not
// called for a tombstone.
func strip(object any) (any, error) {
	configMap, ok := object.(*corev1.ConfigMap)
	if !ok {
		return nil, fmt.Errorf("transforming a %T: want a ConfigMap", object)
	}
	configMap.ManagedFields = nil
	configMap.Data, configMap.BinaryData = nil, nil
	return configMap, nil
}

func (s *session) transform(ctx context.Context) {
	s.Printf("7. A transform\n")
	s.CreateConfigMap(ctx, "large", strings.Repeat("x", 100<<10))
	ctx, cancel := context.WithCancel(ctx)
	factory := informers.NewSharedInformerFactoryWithOptions(s.client, 0,
		informers.WithNamespace(s.Namespace),
		informers.WithTweakListOptions(selectOwn),
		informers.WithTransform(strip))
	defer factory.Shutdown()
	defer cancel()
	lister := factory.Core().V1().ConfigMaps().Lister()
	factory.StartWithContext(ctx)
	lesson.Check(factory.WaitForCacheSyncWithContext(ctx).AsError())
	whole := lesson.Must(s.ConfigMaps().Get(ctx, "large", metav1.GetOptions{}))
	cached := lesson.Must(lister.ConfigMaps(s.Namespace).Get("large"))
	if cached.Size() >= 1<<10 {
		lesson.Check(errors.New("the transform left more than 1 kB"))
	}
	s.Printf("   on the server: %d kB; in memory: less than 1 kB, without data (%d keys) and managedFields (%d entries)\n",
		whole.Size()>>10, len(cached.Data), len(cached.ManagedFields))
}
