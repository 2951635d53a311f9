// Command sharedinformer shows what a shared informer guarantees to its handlers, and what it does not: one
// watch for all of them, what "synced" means, the order of notifications, what a resync is, a deletion that the
// watch reported and one that it missed, and what a transform leaves in memory.
//
// Source, k8s.io/client-go v0.37.2:
//
//   - informers/factory.go: sharedInformerFactory. One informer per Go type, started once.
//   - informers/core/v1/configmap.go: what the generator writes for a resource, typed and untyped.
//   - tools/cache/shared_informer.go: sharedIndexInformer; processorListener, the buffer and the goroutines
//     of each handler; WaitFor, SyncResult.
//   - tools/cache/controller.go: TypedResourceEventHandler, DeletedObject, processReplacedAllInfo, which
//     finds deletions that no watch reported.
//   - tools/cache/mutation_detector.go.
//
// What it replaces: NewFilteredSharedInformerFactory (deprecated), and, superseded by contexts and types,
// Start(stopCh), WaitForCacheSync(stopCh), AddEventHandler with type assertions from any.
package main

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/lesson"
)

func main() { lesson.Main(program) }

var program = lesson.Lesson{
	Name:  "sharedinformer",
	Shows: "Several handlers on one shared informer: one watch, sync, order, resync, deletions, a transform.",
	Run:   run,
}

// session is one run of the lesson.
type session struct {
	*lesson.Env
	// client is the client of the informers. Its requests are recorded, and its link can be cut.
	client   kubernetes.Interface
	link     *lesson.Link
	requests lesson.Requests

	factory  informers.SharedInformerFactory
	informer coreinformers.ConfigMapIndexInformer
	// The slow handler waits until open is called. Only resynced asks for resyncs.
	quick, slow, resynced *recorder
	// registrations are those of the three handlers, in the same order.
	registrations []cache.ResourceEventHandlerRegistration
	open          func()
}

func newSession(env *lesson.Env) *session {
	s := &session{Env: env}
	s.link, s.client = lesson.NewLink(s.requests.Attach(env.Config))
	return s
}

func run(ctx context.Context, env *lesson.Env) {
	s := newSession(env)
	for _, name := range []string{"a", "b", "c"} {
		s.CreateConfigMap(ctx, name, "1")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		s.open()
		s.factory.Shutdown() // It waits for the handlers, the slow one too.
	}()
	s.shareOneWatch(ctx)
	s.awaitSync(ctx)
	s.keepOrder(ctx)
	s.resync(ctx)
	s.seeDeletion(ctx)
	s.missDeletion(ctx)
	s.transform(ctx)
}

// selectOwn selects the ConfigMaps of the lesson.
func selectOwn(options *metav1.ListOptions) { options.LabelSelector = lesson.Label }
