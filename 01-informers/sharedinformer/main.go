// Command sharedinformer shows what a shared informer promises to its handlers, and what it does not: one
// watch for all of them, what "synced" means, in what order they are told, what a resync is, what a deletion
// looks like when it was seen and when it was missed, and what a transform leaves in memory.
//
// The sources to read beside it, in k8s.io/client-go v0.37.2:
//
//   - informers/factory.go: sharedInformerFactory. One informer per Go type, started once.
//   - informers/core/v1/configmap.go: what the generator writes for a resource, typed and untyped.
//   - tools/cache/shared_informer.go: sharedIndexInformer; processorListener, the queue and the goroutines
//     that each handler has to itself; WaitFor, SyncResult.
//   - tools/cache/controller.go: TypedResourceEventHandler, DeletedObject, processReplacedAllInfo, which
//     finds deletions that no watch reported.
//   - tools/cache/mutation_detector.go, identity.go, informer_metrics.go.
//
// What it replaces: NewFilteredSharedInformerFactory (deprecated), and, superseded by contexts and types,
// Start(stopCh), WaitForCacheSync(stopCh), AddEventHandler with casts from any.
package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/lesson"
)

func main() { lesson.Main(program) }

var program = lesson.Lesson{
	Name:  "sharedinformer",
	Shows: "Several handlers on one shared informer: one watch, sync, order, resync, deletions, a transform.",
	Run:   run,
}

// label selects the objects of this lesson. A cluster puts a ConfigMap of its own, kube-root-ca.crt, into
// every namespace; it is none of ours.
const label = "workbook-lesson=sharedinformer"

// session is one run of the lesson.
type session struct {
	*lesson.World
	// wire is between the informers and the server: it counts and can be cut.
	wire *wire
	// watched is the informers' client, through the wire. World.Client is beside it.
	watched kubernetes.Interface

	factory  informers.SharedInformerFactory
	informer coreinformers.ConfigMapIndexInformer
	// The handlers: one that is quick, one that waits for open, one that asks for resyncs.
	quick, slow, resynced *recorder
	// registrations are the informer's answers to the handlers, in the same order.
	registrations []cache.ResourceEventHandlerRegistration
	open          func()
}

func run(ctx context.Context, world *lesson.World) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &session{World: world, wire: newWire()}
	config := rest.CopyConfig(world.Config)
	config.Wrap(s.wire.wrap)
	var err error
	if s.watched, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	for _, name := range []string{"a", "b", "c"} {
		if err := s.create(ctx, name, "1"); err != nil {
			return err
		}
	}
	for _, step := range []func(context.Context) error{
		s.shareOneWatch,
		s.awaitSync,
		s.keepOrder,
		s.resync,
		s.seeDeletion,
		s.missDeletion,
		s.transform,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return s.stop(cancel)
}

func (s *session) configMaps() corev1client.ConfigMapInterface {
	return s.Client.CoreV1().ConfigMaps(s.Namespace)
}

func (s *session) create(ctx context.Context, name, value string) error {
	_, err := s.configMaps().Create(ctx, configMap(name, value), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating ConfigMap %s: %w", name, err)
	}
	return nil
}

func (s *session) set(ctx context.Context, name, value string) error {
	object := configMap(name, value)
	if _, err := s.configMaps().Update(ctx, object, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("updating ConfigMap %s: %w", name, err)
	}
	return nil
}

func (s *session) remove(ctx context.Context, name string) error {
	if err := s.configMaps().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("deleting ConfigMap %s: %w", name, err)
	}
	return nil
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"workbook-lesson": "sharedinformer"}},
		Data:       map[string]string{"value": value},
	}
}
