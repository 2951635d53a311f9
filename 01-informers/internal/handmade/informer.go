package handmade

import (
	"context"
	"errors"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

// Handler is told of every change, after the store has it. It must return soon, as everything behind it waits,
// and must not change the objects, as the store holds the same ones. So it puts a key in a work queue and is
// done.
type Handler = cache.TypedResourceEventHandler[object]

// object is any object of the API. As an interface it is the T of client-go's typed handlers for every resource
// at once.
type object = metav1.Object

// Options say what an informer is about. Only ListerWatcher is required.
type Options struct {
	// Name is used in logs. Default: "handmade".
	Name string
	// ListerWatcher is where the objects come from. They must have ObjectMeta.
	ListerWatcher cache.ListerWatcher
	// Indexers make look-ups in the store by other things than the key. Default: by namespace.
	Indexers cache.Indexers
	// Transform sees every object before it is queued, and may make it smaller. It may see one twice.
	Transform cache.TransformFunc
	// Backoff is how long the reflector waits between its attempts. Default: the reflector's own, 0.8 s to 30 s.
	Backoff *wait.Backoff
	// Probe makes every step visible. Default: none, and no wrappers.
	Probe *Probe
}

// Informer keeps a store in step with the API server, and tells handlers what changed.
type Informer struct {
	reflector *cache.Reflector
	fifo      queue
	indexer   cache.Indexer
	probe     *Probe

	// deltas is held while one delta is processed, so that a handler that is added late misses none and gets
	// none twice.
	deltas   sync.Mutex
	handlers []Handler
}

// queue is the part of a RealFIFO that the informer uses: what the reflector writes to, and what is popped from.
type queue interface {
	cache.Queue
	Close()
}

// New assembles an informer. Nothing runs yet.
func New(options Options) *Informer {
	if options.Name == "" {
		options.Name = "handmade"
	}
	if options.Indexers == nil {
		options.Indexers = cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	}
	probe := options.Probe

	// The store. Its key function also knows the tombstones of objects whose deletion was missed.
	indexer := probe.indexer(cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, options.Indexers))

	// The queue between reflector and store, set as client-go sets it by default (newQueueFIFO in
	// tools/cache/controller.go): a whole list is one delta, and the reflector can go on queueing while a delta
	// is processed. A RealFIFO without AtomicEvents is given the store as KnownObjects instead and splits a
	// list into Replaced and Deleted deltas itself.
	fifo := probe.queue(cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{
		Name:                  options.Name,
		Transformer:           options.Transform,
		AtomicEvents:          true,
		UnlockWhileProcessing: true,
		EmitDeltaTypeBookmark: true,
	}))

	// The reflector writes what it lists and watches to the queue: for it, that is the store.
	reflector := cache.NewReflectorWithOptions(probe.listerWatcher(options.ListerWatcher), nil, fifo, cache.ReflectorOptions{
		Name:            options.Name,
		TypeDescription: options.Name,
		Backoff:         options.Backoff,
	})
	return &Informer{reflector: reflector, fifo: fifo, indexer: indexer, probe: probe}
}

// Run runs the informer until ctx ends. It is called once.
func (i *Informer) Run(ctx context.Context) {
	defer context.AfterFunc(ctx, i.probe.open)()
	defer context.AfterFunc(ctx, i.fifo.Close)()
	var reflecting sync.WaitGroup
	reflecting.Go(func() { i.reflector.RunWithContext(ctx) })
	i.popUntilClosed(ctx)
	reflecting.Wait()
}

// popUntilClosed takes one delta after another off the queue. After Close it ends when the queue is empty,
// as Pop does.
func (i *Informer) popUntilClosed(ctx context.Context) {
	for {
		switch _, err := i.fifo.Pop(i.process); {
		case errors.Is(err, cache.ErrFIFOClosed):
			return
		case err != nil:
			// The delta is gone. Only a delta of a type or content that does not exist gets here.
			utilruntime.HandleErrorWithContext(ctx, err, "Processing a delta")
		}
	}
}

// Store returns what the informer knows of the cluster. Reading it costs no request. Objects must not be changed.
func (i *Informer) Store() cache.Indexer { return i.indexer }

// HasSyncedChecker is done when the first list is in the store and all handlers were told of it.
func (i *Informer) HasSyncedChecker() cache.DoneChecker { return i.fifo.HasSyncedChecker() }

// LastSyncResourceVersion is how far the reflector has come; a new watch would begin there.
func (i *Informer) LastSyncResourceVersion() string { return i.reflector.LastSyncResourceVersion() }
