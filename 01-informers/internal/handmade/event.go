package handmade

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Stage is a part of the informer that an item is in.
type Stage string

// The stages, in the order of an item's path, with the values of Event.Type in each. Those in capitals are types of watch
// events (watch.EventType), those in CamelCase are types of deltas (cache.DeltaType), and the others are constants below.
// Events "without a key" are about the part, and not about one item.
const (
	// StageList is a list from the API server: at the start, and after every watch that could not be continued (a relist).
	//   started  without a key. Streamed says how it is requested
	//   ADDED    one object of a streaming list
	//   LISTED   one object of a list request
	//   ended    without a key. Count is the number of objects; ResourceVersion is that of the list
	//   failed   without a key, with an error
	StageList Stage = "list"
	// StageWatch is the watch that follows the list.
	//   started  without a key. The watch begins after ResourceVersion
	//   ADDED, MODIFIED, DELETED   one change
	//   BOOKMARK without a key. The watch has all changes until ResourceVersion
	//   ERROR    without a key, with the error that the API server sent in the watch, such as 410 Gone
	//   ended    without a key. The reflector starts another watch
	//   failed   without a key, with an error: the watch could not be started
	StageWatch Stage = "watch"
	// StageQueue is the RealFIFO between reflector and pop loop.
	//   Added, Updated, Deleted   one delta
	//   ReplacedAll  without a key: one delta with a whole list of Count objects. One event with a key follows for each of
	//                these objects, which are in the queue as that one delta
	//   Bookmark     without a key: one delta with a ResourceVersion only
	StageQueue Stage = "queue"
	// StageStore is the indexer. Every delta of the queue is applied here, and is then no longer in the queue.
	//   add, update, delete   one object
	//   replace   without a key: the whole content was replaced by Count objects at once. One event with a key follows for
	//             each object: add, update, or delete for an object that the list does not have
	//   bookmark  without a key
	StageStore Stage = "store"
	// StageHandler is a call of the event handler.
	//   add, update, delete
	StageHandler Stage = "handler"
	// StageWaiting is the work queue (workqueue.Typed): from here on there are keys and no objects.
	//   added     the key waits for a worker
	//   merged    the key waited already: this item ends here, and Into continues. Without an Into it is the same item
	//   dirty     a worker processes the key: the item stays here, and is not queued until that worker is done
	//   readded   that worker is done, and the key is queued
	//   returned  its backoff has expired: the key is queued
	StageWaiting Stage = "waiting"
	// StageWorking is a worker that processes the key. No other worker gets the same key.
	//   started
	StageWorking Stage = "working"
	// StageBackoff is a key whose work failed. The rate limiter delays it.
	//   failed    with an error. With an Into the key was in backoff already: this item ends here
	StageBackoff Stage = "backoff"
	// StageDone is the end of the path.
	//   done      the work succeeded: Forget and Done were called
	StageDone Stage = "done"
)

// The types of events that client-go does not name.
const (
	Started  = "started"
	Ended    = "ended"
	Failed   = "failed"
	Listed   = "LISTED"
	Add      = "add"
	Update   = "update"
	Delete   = "delete"
	Replace  = "replace"
	Bookmark = "bookmark"
	Waits    = "added"
	Merged   = "merged"
	Dirty    = "dirty"
	Readded  = "readded"
	Returned = "returned"
	Done     = "done"
)

// Event is one thing that happened in one part. The JSON has what does not depend on Go.
type Event struct {
	Stage Stage  `json:"stage"`
	Type  string `json:"type"`
	// Key is empty if the event is about the part and not about one object.
	Key cache.ObjectName `json:"-"`
	// Item is uid@resourceVersion: one version of one object, the same in all stages. After a relist, an object that did not
	// change has the same Item again.
	Item string `json:"item,omitempty"`
	// Into is the item that this one was merged into, in the work queue.
	Into string `json:"into,omitempty"`
	// ResourceVersion is that of the object or, without a key, that of the list or the watch.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Tombstone: a relist found the deletion, for which there was no watch event; Item is the last known state.
	Tombstone bool `json:"tombstone,omitempty"`
	// Initial: it belongs to the first list.
	Initial bool `json:"initial,omitempty"`
	// Count is how many objects an event without a key is about.
	Count int `json:"count,omitempty"`
	// Attempt is how often the key has failed in a row, Delay how long its backoff is.
	Attempt int           `json:"attempt,omitempty"`
	Delay   time.Duration `json:"-"`
	// Streamed: the list that starts is a streaming list.
	Streamed bool `json:"-"`
	// PartOfList: a whole list is queued or stored at once, and the event is for one object: one in the list, or one that is
	// deleted because the list does not have it.
	PartOfList bool `json:"-"`
	// BackedOff: the key was queued after its backoff.
	BackedOff bool `json:"-"`
	// Err is an error of the API server or of the work. It never has content of an object.
	Err error `json:"-"`
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
