// Package handmade is one informer, assembled by hand from the parts of client-go that every informer is made
// of, with the work queue and the workers that a controller hangs on it:
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
// The other files make every step visible, and let a reader hold it: a Probe puts a thin wrapper around each
// part (observed_*.go), which tells an observer what passes, and may be told by a Gate (gate.go) to wait first.
// Without a Probe there are no wrappers, and this is a plain informer.
//
// The files of client-go v0.37.2 to read beside it, in the order of the drawing: tools/cache/listwatch.go,
// reflector.go (ListAndWatchWithContext), the_real_fifo.go (Pop), controller.go (processLoop,
// processDeltas, processReplacedAllInfo), store.go and thread_safe_store.go, util/workqueue/queue.go.
//
// What cache.SharedIndexInformer has and this one lacks: a goroutine and a growing buffer for each handler, so
// that a slow one does not stop the others (sharedProcessor), removing a handler, resync, batches (PopBatch),
// the mutation detector and metrics.
package handmade
