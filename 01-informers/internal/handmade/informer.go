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

// Handler is called for every change, after the store has it. It must return soon, because the pop loop waits for it, and
// must not change the objects, because they are those of the store. So a handler only adds a key to a work queue.
type Handler = cache.TypedResourceEventHandler[object]

// object is any object of the API: an interface, so that client-go's typed handlers work for every resource.
type object = metav1.Object

// Options configure an informer. Only ListerWatcher is required.
type Options struct {
	// Name is used in logs.
	Name string
	// ListerWatcher lists and watches the objects. They must have ObjectMeta.
	ListerWatcher cache.ListerWatcher
	// Transform is called with every object before it is queued, and may remove fields. It may be called twice with one.
	Transform cache.TransformFunc
	// Backoff is how long the reflector waits between attempts. Default: the reflector's own, 0.8 s to 30 s.
	Backoff *wait.Backoff
	// Probe reports each step. Default: none, and no wrappers.
	Probe *Probe
}

// Informer keeps a store up to date with the API server, and calls handlers for each change.
type Informer struct {
	reflector *cache.Reflector
	fifo      cache.Queue
	indexer   cache.Indexer
	probe     *Probe

	// deltas is held while one delta is processed, so that a handler that is added later misses no change and gets none
	// twice.
	deltas   sync.Mutex
	handlers []Handler
}

// New assembles an informer. Nothing runs yet.
func New(options Options) *Informer {
	// The store. Its key function also accepts tombstones: of objects whose deletion no watch event reported.
	indexer := cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})

	// The queue between reflector and store, with client-go's default options (newQueueFIFO in
	// tools/cache/controller.go): a whole list is one delta, and the reflector can queue deltas while another is
	// processed. Without AtomicEvents, a RealFIFO gets the store as KnownObjects and splits a list into Replaced and
	// Deleted deltas.
	realFIFO := cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{
		Name:                  options.Name,
		Transformer:           options.Transform,
		AtomicEvents:          true,
		UnlockWhileProcessing: true,
		EmitDeltaTypeBookmark: true,
	})

	// A probe has a wrapper around each part.
	var fifo cache.Queue = realFIFO
	source := options.ListerWatcher
	if probe := options.Probe; probe != nil {
		indexer = &observedIndexer{Indexer: indexer, probe: probe}
		fifo = &observedQueue{RealFIFO: realFIFO, probe: probe}
		source = observeListerWatcher(source, probe)
	}

	// The reflector writes what it lists and watches to the queue, which it sees as its store.
	reflector := cache.NewReflectorWithOptions(source, nil, fifo, cache.ReflectorOptions{
		Name:            options.Name,
		TypeDescription: options.Name,
		Backoff:         options.Backoff,
	})
	return &Informer{reflector: reflector, fifo: fifo, indexer: indexer, probe: options.Probe}
}

// Run runs the informer until ctx ends. It is called once.
func (i *Informer) Run(ctx context.Context) {
	if i.probe != nil {
		defer context.AfterFunc(ctx, i.probe.Gate.open)()
	}
	defer context.AfterFunc(ctx, i.fifo.Close)()
	var reflecting sync.WaitGroup
	reflecting.Go(func() { i.reflector.RunWithContext(ctx) })
	i.popUntilClosed(ctx)
	reflecting.Wait()
}

// popUntilClosed processes one delta after the other. After the queue is closed, it processes what is left and returns.
func (i *Informer) popUntilClosed(ctx context.Context) {
	for {
		switch _, err := i.fifo.Pop(i.process); {
		case errors.Is(err, cache.ErrFIFOClosed):
			return
		case err != nil:
			// Only a delta of an unknown type or content cannot be processed. It is skipped.
			utilruntime.HandleErrorWithContext(ctx, err, "Processing a delta")
		}
	}
}

// Store returns the cache. Reading it sends no request. Its objects must not be changed.
func (i *Informer) Store() cache.Indexer { return i.indexer }

// HasSyncedChecker is done when the first list is in the store and all handlers were called for it.
func (i *Informer) HasSyncedChecker() cache.DoneChecker { return i.fifo.HasSyncedChecker() }
