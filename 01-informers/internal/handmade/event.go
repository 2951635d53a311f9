package handmade

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Stage is a part of the informer that an item is in.
type Stage string

// The stages, in the order of an item's path. It begins with list or watch. After working comes backoff or done.
const (
	StageList    Stage = "list"
	StageWatch   Stage = "watch"
	StageQueue   Stage = "queue"
	StageStore   Stage = "store"
	StageHandler Stage = "handler"
	StageWaiting Stage = "waiting"
	StageWorking Stage = "working"
	StageBackoff Stage = "backoff"
	StageDone    Stage = "done"
)

// What Event.Type may be, besides the types of watch events (watch.EventType) and of deltas (cache.DeltaType).
const (
	// Of a list and of a watch: it started, ended or failed. Listed is an object of a list request; an object of a
	// streaming list is watch.Added.
	Started = "started"
	Ended   = "ended"
	Failed  = "failed"
	Listed  = "LISTED"

	// Of the store and of a handler.
	Add      = "add"
	Update   = "update"
	Delete   = "delete"
	Replace  = "replace"
	Bookmark = "bookmark"

	// Of a key in the work queue, see workqueue.Typed: it waits in the queue; it waited there already; a worker processes
	// it, so that it is marked dirty; it is queued again when that worker is done; it is queued after its backoff.
	Waits    = "added"
	Merged   = "merged"
	Dirty    = "dirty"
	Readded  = "readded"
	Returned = "returned"

	// Of a key that was processed.
	Done = "done"
)

// Event is one thing that happened in one part.
type Event struct {
	Stage Stage
	Type  string
	// Key is empty if the event is about the part and not about one object.
	Key cache.ObjectName
	// Item is uid@resourceVersion: one version of one object, the same in all stages.
	Item string
	// Into is the item that this one was merged into.
	Into            string
	ResourceVersion string
	// Tombstone: a relist found the deletion; the object is the last known state.
	Tombstone bool
	// Streamed: the list that starts is a streaming list.
	Streamed bool
	// Initial: it belongs to the first list.
	Initial bool
	// Whole: the event is for one object of a whole list that moves at once.
	Whole bool
	// BackedOff: the key was queued after its backoff.
	BackedOff bool
	// Count is how many objects an event without a key is about.
	Count int
	// Attempt is how often the key has failed in a row, Delay how long its backoff is.
	Attempt int
	Delay   time.Duration
	// Err is an error of the API server or of the work. It never has content of an object.
	Err error
}

// ItemOf names one version of one object.
func ItemOf(object metav1.Object) string {
	return string(object.GetUID()) + "@" + object.GetResourceVersion()
}

// about begins an event about an object, or about the last known state of one (a tombstone).
func about(stage Stage, what string, obj any) Event {
	event := Event{Stage: stage, Type: what}
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		event.Tombstone = true
		event.Key, _ = cache.ParseObjectName(unknown.Key)
		obj = unknown.Obj
	}
	if object, ok := obj.(metav1.Object); ok {
		event.Key = cache.MetaObjectToName(object)
		event.Item = ItemOf(object)
		event.ResourceVersion = object.GetResourceVersion()
	}
	return event
}
