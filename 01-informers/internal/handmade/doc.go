// Package handmade is an informer, assembled by hand from the parts of client-go that every informer consists of, with the
// work queue and the workers of a controller:
//
//	API server
//	   │  list, then watch
//	ListerWatcher            cache.ListWatch                source.go
//	   │
//	Reflector                cache.Reflector                informer.go
//	   │  Replace, Add, Update, Delete, Bookmark
//	queue of deltas          cache.RealFIFO                 informer.go
//	   │  Pop
//	pop loop                 process                        process.go
//	   ├──→ store            cache.Indexer                  informer.go
//	   └──→ handlers         cache.TypedResourceEventHandler   process.go
//	            │  a key
//	         work queue      workqueue.TypedRateLimitingInterface   workers.go
//	            │  Get, Done, Forget, AddRateLimited
//	         workers         Workers                        workers.go
//
// The other files make each step visible, and can pause it: a Probe puts a thin wrapper around each part (observed_*.go),
// which first waits for a Gate (gate.go) and then reports each item to an observer. Without a Probe there are no
// wrappers, and this is an ordinary informer.
//
// Read beside it these files of client-go v0.37.2, in the order of the diagram: tools/cache/listwatch.go,
// reflector.go (ListAndWatchWithContext), the_real_fifo.go (Pop), controller.go (processLoop,
// processDeltas, processReplacedAllInfo), store.go and thread_safe_store.go, util/workqueue/queue.go.
//
// cache.SharedIndexInformer has more: a goroutine and a growing buffer for each handler, so that a slow handler does not
// block the others (sharedProcessor), removal of handlers, resync, batches (PopBatch), the mutation detector and metrics.
package handmade
