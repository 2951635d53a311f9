package handmade

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Stage is a part of the informer that an item is in.
type Stage string

// The stages in the order in which an item comes through them. List and watch are two ways in, backoff and
// done are two ways out of working. Control is about the whole.
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
	// Of a list and of a watch: it began, it is at its end, it could not be had. Listed is an object of a list
	// that came in one piece; one of a streamed list is watch.Added.
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

	// Of a key in the work queue. See workqueue.Typed: it waits in the queue; it was there already; it is being
	// worked on and is marked dirty; it is put in the queue after that; it is put there because its back-off is
	// over.
	Waits    = "added"
	Merged   = "merged"
	Dirty    = "dirty"
	Readded  = "readded"
	Returned = "returned"

	// Of a key that was worked on.
	Done = "done"
)

// Event is one thing that happened in one part.
type Event struct {
	Stage Stage
	Type  string
	// Key is empty where the event is about the part and not about one object.
	Key cache.ObjectName
	// Item is uid@resourceVersion: one version of one object, the same in all stages.
	Item string
	// Into is the item that goes on for this one, where two became one.
	Into            string
	ResourceVersion string
	// Tombstone: the deletion was found by a relist; the object is the last one known.
	Tombstone bool
	// Streamed: the list that begins is streamed as a watch.
	Streamed bool
	// Initial: it belongs to the first list.
	Initial bool
	// Whole: it happened to a whole list at once, and this is the part of it that concerns one object.
	Whole bool
	// KeptBack: the key comes from a back-off that is over.
	KeptBack bool
	// Count is how many objects an event without a key is about.
	Count int
	// Attempt is how often the key has failed in a row, Delay how long it is kept back.
	Attempt int
	Delay   time.Duration
	// Err is what went wrong. It comes from the API server or from the work; never from an object's content.
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
