package glass

import "example.com/workbook/01-informers/internal/handmade"

// This file is the API between the server and the page.
//
// # How a page uses it
//
//  1. GET /state, show it, and keep its cursor.
//  2. new EventSource("/events?after=" + cursor), and listen for three kinds of messages: "batch" (a Batch),
//     "dropped" (a Dropped) and "reset" (no data). The browser reconnects by itself and sends the id of the last
//     message as Last-Event-ID, so that each event is received once.
//  3. After "dropped", the page may show a state that is wrong: GET /state again and show it. The connection may stay
//     open; ignore events up to State.Now.Seq that arrive later.
//  4. After "reset", the server was restarted: close the EventSource and begin with 1.
//
// # Requests
//
//	GET  /             the page, from the folder page/; files beside index.html by their names
//	GET  /state        State
//	GET  /events       server-sent events: those after a cursor, ?after=CURSOR, or without one those from now on
//	GET  /object?key=NAMESPACE/NAME   (NAME alone for a cluster-scoped resource) text/plain: one object of the
//	                   store as YAML, without managedFields; 404 if the store does not have it
//	POST /pause        no item moves any more                  → Control
//	POST /resume       all items move again                    → Control
//	POST /step         pauses, and moves one item to its next stage → Control
//
// POST needs no body. The server rejects it (403) if it comes from another web page. While the server listens on a loopback
// address, it rejects every request (403) whose Host header is not this machine. Errors are text/plain, one line.
//
// # The path of an item
//
//	list ─┐
//	      ├→ queue → store → handler → waiting → working → done
//	watch ┘                               ↑         ↓
//	                                      └───── backoff
//
// An item is one state of one object, at one resourceVersion. Event.Item identifies it in all stages. At any time it is in
// one stage, that of its latest event. The work queue has keys only, so that several items are merged there: an event with
// an Into is the last one of its item, and the item in Into continues.
//
// Events without a Key are about a part and not about an item: a watch that started, a delta with a whole list.

// Stage is where an event happened. The values are those in the diagram above, and "control".
type Stage = handmade.Stage

// The stages, and the values of Event.Type in each. Names in capitals are types of the API's watch events, names in CamelCase
// are client-go's delta types (cache.DeltaType), the others are of this API.
const (
	// StageList is a list from the API server: at the start, and after every watch that could not be continued (a relist).
	//   started  no key. Text says how: as a streaming list (the default since 1.35) or as a list request
	//   ADDED    one object of a streaming list
	//   LISTED   one object of a list request
	//   ended    no key. Count is the number of objects; ResourceVersion is that of the list
	//   failed   no key. Text is the error
	StageList = handmade.StageList
	// StageWatch is the watch that follows the list.
	//   started  no key. The watch begins after ResourceVersion
	//   ADDED, MODIFIED, DELETED   one change
	//   BOOKMARK no key. The watch has all changes until ResourceVersion
	//   ERROR    no key. Text is the error that the API server sent in the watch, such as 410 Gone
	//   ended    no key. The watch ended; the reflector starts another
	//   failed   no key. The watch could not be started; Text is the error
	StageWatch = handmade.StageWatch
	// StageQueue is the RealFIFO between reflector and pop loop.
	//   Added, Updated, Deleted   one delta
	//   ReplacedAll  no key: one delta with a whole list of Count objects. One event with a key follows for each of these
	//                objects, which are in the queue as that one delta
	//   Bookmark     no key: one delta with a ResourceVersion only
	StageQueue = handmade.StageQueue
	// StageStore is the indexer. Every delta of the queue is applied here, and is then no longer in the queue.
	//   add, update, delete   one object
	//   replace   no key: the whole content was replaced by Count objects at once. One event with a key follows for each
	//             object: add, update, or delete for an object that the list does not have
	//   bookmark  no key
	StageStore = handmade.StageStore
	// StageHandler is a call of the event handler.
	//   add, update, delete
	StageHandler = handmade.StageHandler
	// StageWaiting is the work queue: from here on there are keys and no objects.
	//   added     the key waits for a worker
	//   merged    the key waited already: this item ends here, and Into continues. Without an Into it is the same item
	//   dirty     a worker processes the key: the item stays here, and is not queued until that worker is done
	//   readded   that worker is done, and the key is queued
	//   returned  its backoff has expired: the key is queued
	StageWaiting = handmade.StageWaiting
	// StageWorking is a worker that processes the key. No other worker gets the same key.
	//   started
	StageWorking = handmade.StageWorking
	// StageBackoff is a key whose work failed. The rate limiter delays it by DelayMs.
	//   failed    Text is the error, Attempt how often the key has failed in a row. With an Into the key was in backoff
	//             already: this item ends here
	StageBackoff = handmade.StageBackoff
	// StageDone is the end of the path.
	//   done      the work succeeded: Forget and Done were called
	StageDone = handmade.StageDone
	// StageControl is what users of the page did, and what is about the informer as a whole. No key.
	//   synced    the first list is in the store
	//   paused, resumed
	//   stepped   Text says which item moved, or that none waited
	StageControl Stage = "control"
)

// Event is one thing that happened, reported by the part in which it happened.
type Event struct {
	// Seq counts the events of this run from 1, without a gap.
	Seq uint64 `json:"seq"`
	// Time is when it happened, in milliseconds since the start of the run.
	Time int64 `json:"time"`
	// Stage is where.
	Stage Stage `json:"stage"`
	// Type is what; the stages above list the values.
	Type string `json:"type"`
	// Key is the object's namespace/name, or its name if it is cluster-scoped. Empty: the event is not about one item.
	Key string `json:"key,omitempty"`
	// Item is "UID@RESOURCEVERSION", the same in all stages. An object and a later one with the same key have different
	// Items. After a relist, an object that did not change has the same Item again.
	Item string `json:"item,omitempty"`
	// Into is the item that this one was merged into, in the work queue.
	Into string `json:"into,omitempty"`
	// ResourceVersion is that of the object or, without a key, that of the list or the watch.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Tombstone is true for a deletion without a watch event: a relist did not have the object any more. Item is then the
	// last known state.
	Tombstone bool `json:"tombstone,omitempty"`
	// Initial is true for events of the first list.
	Initial bool `json:"initial,omitempty"`
	// Count is how many objects an event without a key is about.
	Count int `json:"count,omitempty"`
	// Attempt is how often the work on the key has failed in a row.
	Attempt int `json:"attempt,omitempty"`
	// DelayMs is how long a backoff is, in milliseconds.
	DelayMs int64 `json:"delayMs,omitempty"`
	// Text is one short sentence for the user. It never has content of an object.
	Text string `json:"text"`
}

// Batch is the data of a "batch" message: the events of the last 50 ms or more, oldest first, and the state after them. A
// Batch has no events if only Held changed. Without a change the server sends nothing but a comment every 15 s.
type Batch struct {
	Events []Event `json:"events"`
	Now    Now     `json:"now"`
}

// Dropped is the data of a "dropped" message: this client was too slow. The server keeps the last Limits.Ring
// events, and some were removed before they were sent to this client.
type Dropped struct {
	// Count is how many events this client missed.
	Count uint64 `json:"count"`
	// From and To are the first and the last Seq of them.
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// Now is the state after the event Seq.
type Now struct {
	// Seq is that of the latest event; 0 before the first.
	Seq uint64 `json:"seq"`
	// Paused: no item moves.
	Paused bool `json:"paused"`
	// Synced: the first list is in the store.
	Synced bool `json:"synced"`
	// Counts is how many deltas, objects or keys each part has.
	Counts Counts `json:"counts"`
	// Totals is how many events with a key each stage has had since the start of the run.
	Totals map[Stage]uint64 `json:"totals"`
	// Held is the items that wait while paused, in the order in which steps move them. At most one for each of watch, queue
	// and pop loop, and one for each worker.
	Held []Held `json:"held"`
	// Dropped is how many events were dropped for slow clients since the start, the sum of all clients.
	Dropped uint64 `json:"dropped"`
}

// Counts is how many deltas, objects or keys each part has at one time.
type Counts struct {
	// Queue is the number of deltas in the RealFIFO. A whole list is one delta.
	Queue int `json:"queue"`
	// Store is the number of objects in the indexer.
	Store int `json:"store"`
	// Waiting, Working and Backoff are numbers of keys. A key is in Backoff and also in Waiting or Working if an event
	// arrived during its backoff. A key that is dirty counts in Working only.
	Waiting int `json:"waiting"`
	Working int `json:"working"`
	Backoff int `json:"backoff"`
}

// Held is one item that waits while the informer is paused.
type Held struct {
	// To is the stage that a step moves it to. For list it is the request for a list, without a key.
	To Stage `json:"to"`
	// Key and Item are as in Event. Both are empty for a whole list.
	Key  string `json:"key,omitempty"`
	Item string `json:"item,omitempty"`
}

// State is everything that a page needs when it connects.
type State struct {
	// Cursor is for /events?after=: the first event is the one after this State.
	Cursor string `json:"cursor"`
	// Resource is what the informer watches.
	Resource Resource `json:"resource"`
	// Time is that of the server, in milliseconds since the start of the run, as Event.Time.
	Time int64 `json:"time"`
	Now  Now   `json:"now"`
	// Items are the latest events of the last Limits.Items items, oldest event first: where each item is. Items that have
	// ended (done, or with an Into) are among them.
	Items []Event `json:"items"`
	// Log is the last Limits.Log events, oldest first.
	Log []Event `json:"log"`
	// Objects are those of the store, sorted by key, at most Limits.Objects. Now.Counts.Store - len(Objects) are left out.
	Objects []Object `json:"objects"`
	// Clients is how many pages are connected to /events.
	Clients int    `json:"clients"`
	Limits  Limits `json:"limits"`
}

// Resource is what the informer watches, and the configuration of its workers.
type Resource struct {
	// Name is the plural name. Group is empty for the core group.
	Name    string `json:"name"`
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	// Namespace is the one that is watched. Empty means all namespaces, or a cluster-scoped resource.
	Namespace  string `json:"namespace"`
	Namespaced bool   `json:"namespaced"`
	// MetadataOnly: the API server sends the metadata of objects only. It is set for all resources whose name has "secret".
	MetadataOnly bool `json:"metadataOnly"`
	// Workers is how many keys are processed at once, WorkTimeMs how long one takes.
	Workers    int   `json:"workers"`
	WorkTimeMs int64 `json:"workTimeMs"`
	// FailEvery: with N, the work fails every Nth time. 0: never.
	FailEvery int `json:"failEvery"`
}

// Object is one entry of the store.
type Object struct {
	Key             string `json:"key"`
	Item            string `json:"item"`
	ResourceVersion string `json:"resourceVersion"`
}

// Limits bound the server's memory.
type Limits struct {
	// Ring is how many events are kept for slow clients.
	Ring int `json:"ring"`
	// Batch is the largest number of events in one message.
	Batch int `json:"batch"`
	// FlushMs is the shortest time between two messages, in milliseconds.
	FlushMs int64 `json:"flushMs"`
	// Items, Log and Objects are the maximum lengths of the lists in State.
	Items   int `json:"items"`
	Log     int `json:"log"`
	Objects int `json:"objects"`
	// Clients is how many pages may be connected to /events at once. The server rejects more (503).
	Clients int `json:"clients"`
}

// Control is the response to a POST.
type Control struct {
	// Now is the state after it.
	Now Now `json:"now"`
	// Stepped is the item that /step moved; null if none waited, and for the other requests.
	Stepped *Held `json:"stepped"`
}
