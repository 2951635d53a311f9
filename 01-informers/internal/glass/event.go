package glass

// This file is the contract between the server and the page. What the page may rely on is said here and
// nowhere else.
//
// # How a page uses it
//
//  1. GET /state, draw it, and keep its cursor.
//  2. new EventSource("/events?after=" + cursor), and listen for three kinds of message:
//     "batch" (a Batch), "dropped" (a Dropped) and "reset" (no data). The browser reconnects by itself
//     and sends the id of the last message as Last-Event-ID: nothing is lost and nothing comes twice.
//  3. After "dropped", what is drawn may be wrong: GET /state again and draw it anew. The connection
//     may stay; events up to State.Now.Seq that still come are to be ignored.
//  4. After "reset" the server is another one than the page began with (it was restarted): close the
//     EventSource and begin at 1.
//
// # Requests
//
//	GET  /             the page, from the folder page/; files beside index.html by their names
//	GET  /state        State
//	GET  /events       server-sent events. ?after=CURSOR begins after that cursor; without it, with what comes next
//	GET  /object?key=NAMESPACE/NAME   (or NAME for what has no namespace) text/plain: one object of the
//	                   store as YAML, without managedFields; 404 where the store does not have it
//	POST /pause        everything is held where it is          → Control
//	POST /resume       everything goes on                      → Control
//	POST /step         one item goes one stage on; pauses first if nothing was paused → Control
//
// POST needs no body. It is refused (403) if it comes from another web page, and any request is (403) if its Host
// header is not this machine, while the server listens on a loopback address only. Errors are text/plain, one line.
//
// # The path of an item
//
//	list ─┐
//	      ├→ queue → store → handler → waiting → working → done
//	watch ┘                               ↑         ↓
//	                                      └───── backoff
//
// An item is one version of one object: Event.Item names it on all its way, and at any time it is in one place,
// that of its newest event. In the work queue there are only keys, so that several items become one there: an
// event with an Into is the last one of its item, and the item that Into names goes on for both.
//
// Events without a Key are about a part and not about an item: a watch that began, a delta that holds a whole list.

// Stage says where an event happened. The values are those in the drawing above, and "control".
type Stage string

// The stages, and for each the values that Event.Type has there. Names in capitals are those of the API's watch
// events, CamelCase ones are client-go's delta types (cache.DeltaType), the others are words of this page.
const (
	// StageList is a list on its way in: at the start, and after every watch that could not be
	// continued (a relist).
	//   started  no key. Text says how: streamed as a watch (the default since 1.35) or as a list request
	//   ADDED    one object of a streamed list
	//   LISTED   one object of a list request
	//   ended    no key. Count objects came; ResourceVersion is that of the list
	//   failed   no key. Text is the error
	StageList Stage = "list"
	// StageWatch is the watch that follows the list.
	//   started  no key. ResourceVersion is the one the watch begins after
	//   ADDED, MODIFIED, DELETED   one change
	//   BOOKMARK no key. ResourceVersion is how far the watch has come
	//   ERROR    no key. Text is the error the server sent in the stream; 410 Gone is one
	//   ended    no key. The stream is at its end; the reflector starts another
	//   failed   no key. The watch could not be started; Text is the error
	StageWatch Stage = "watch"
	// StageQueue is the RealFIFO between reflector and pop loop.
	//   Added, Updated, Deleted   one delta
	//   ReplacedAll  without key: one delta that holds a whole list of Count objects. It is followed by
	//                one event with key for each object in it. All of them are in the queue as that one delta
	//   Bookmark     no key: one delta that holds only a ResourceVersion
	StageQueue Stage = "queue"
	// StageStore is the indexer. Every delta that was in the queue comes here, and has then left the queue.
	//   add, update, delete   one object
	//   replace   no key: the whole content was replaced by Count objects, in one go. It is followed by one
	//             event with key for each object: add, update, or delete for what the list no longer has
	//   bookmark  no key
	StageStore Stage = "store"
	// StageHandler is the event handler being called.
	//   add, update, delete
	StageHandler Stage = "handler"
	// StageWaiting is the work queue: from here on there are keys and no objects.
	//   added     the key waits for a worker
	//   merged    the key was there already: this item ends here, Into goes on. Without an Into it is the
	//             same item that was there
	//   dirty     a worker has the key in hand: the item stays here, outside the line, until that worker is done
	//   readded   that worker is done, and the key waits in line
	//   returned  its back-off is over: the key waits in line
	StageWaiting Stage = "waiting"
	// StageWorking is a worker with the key in hand. No other worker can have the same key.
	//   started
	StageWorking Stage = "working"
	// StageBackoff is a key whose work failed, and that the rate limiter keeps back for DelayMs.
	//   failed    Text is the error, Attempt how often the key has failed in a row. With an Into the key was
	//             being kept back already: this item ends here
	StageBackoff Stage = "backoff"
	// StageDone is the end of the way.
	//   done      the work succeeded: Forget and Done were called
	StageDone Stage = "done"
	// StageControl is what readers of the page did, and what concerns the informer as a whole. No key.
	//   synced    the first list is in the store
	//   paused, resumed
	//   stepped   Text says what went on, or that nothing was held
	StageControl Stage = "control"
)

// Event is one thing that happened, told by the part that it happened in.
type Event struct {
	// Seq counts the events of this run from 1, without a gap.
	Seq uint64 `json:"seq"`
	// Time is when it happened, in milliseconds since the start of the run.
	Time int64 `json:"time"`
	// Stage is where.
	Stage Stage `json:"stage"`
	// Type is what; the stages above list the values.
	Type string `json:"type"`
	// Key is the object's namespace/name, or its name where it has no namespace. Empty: about no single item.
	Key string `json:"key,omitempty"`
	// Item is "UID@RESOURCEVERSION": one version of one object, the same in all stages. Two objects that had the same
	// key one after the other differ in it. After a relist an unchanged object travels again under the same Item.
	Item string `json:"item,omitempty"`
	// Into is the item that this one became part of, in the work queue.
	Into string `json:"into,omitempty"`
	// ResourceVersion is the object's, or where there is no key the list's or the watch's.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Tombstone is true for a deletion that no watch event told of: a relist did not have the object any more.
	// Item is then the last version that the store had.
	Tombstone bool `json:"tombstone,omitempty"`
	// Initial is true for what belongs to the first list.
	Initial bool `json:"initial,omitempty"`
	// Count is how many objects an event without key is about.
	Count int `json:"count,omitempty"`
	// Attempt is how often the work on the key has failed in a row.
	Attempt int `json:"attempt,omitempty"`
	// DelayMs is how long a back-off is, in milliseconds.
	DelayMs int64 `json:"delayMs,omitempty"`
	// Text is one short sentence for the reader. It never holds content of an object.
	Text string `json:"text"`
}

// Batch is the data of a "batch" message: what happened in the last 50 ms or more, oldest first, and how things
// stand after it. A Batch without events comes when only Held changed. Nothing is sent while nothing happens,
// except a comment every 15 s.
type Batch struct {
	Events []Event `json:"events"`
	Now    Now     `json:"now"`
}

// Dropped is the data of a "dropped" message: this client was too slow, and events that it had not been sent
// are gone. They are gone from the server's memory too: it keeps the last Limits.Ring events.
type Dropped struct {
	// Count is how many this client has just missed.
	Count uint64 `json:"count"`
	// From and To are the first and last Seq that it missed.
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// Now is how things stand after the event Seq.
type Now struct {
	// Seq is the last event counted in here; 0 before the first.
	Seq uint64 `json:"seq"`
	// Paused: everything is held where it is.
	Paused bool `json:"paused"`
	// Synced: the first list is in the store.
	Synced bool `json:"synced"`
	// Counts is how many there are in each part at this moment.
	Counts Counts `json:"counts"`
	// Totals is how many events with a key there have been in each stage since the start of the run.
	Totals map[Stage]uint64 `json:"totals"`
	// Held is what waits at the gate while paused, the next one to be stepped first. At most one for each
	// of watch, queue and pop loop, and one for each worker.
	Held []Held `json:"held"`
	// Dropped is how many events were dropped for slow clients since the start, over all clients.
	Dropped uint64 `json:"dropped"`
}

// Counts is how many there are in each part at one moment.
type Counts struct {
	// Queue is the number of deltas in the RealFIFO. A whole list is one delta.
	Queue int `json:"queue"`
	// Store is the number of objects in the indexer.
	Store int `json:"store"`
	// Waiting, Working and Backoff are numbers of keys. A key may be in Backoff and in Waiting or Working at
	// once: an event came while it was kept back. What is "dirty" counts in none of them.
	Waiting int `json:"waiting"`
	Working int `json:"working"`
	Backoff int `json:"backoff"`
}

// Held is one item that the gate holds.
type Held struct {
	// To is the stage that it will enter when it is stepped. For list it is the request for a list, without key.
	To Stage `json:"to"`
	// Key and Item are as in Event. Both are empty for a whole list.
	Key  string `json:"key,omitempty"`
	Item string `json:"item,omitempty"`
}

// State is everything that a page needs when it comes late.
type State struct {
	// Cursor is what /events?after= takes, so that the first event is the one after this State.
	Cursor string `json:"cursor"`
	// Resource is what the informer watches.
	Resource Resource `json:"resource"`
	// Time is the server's, in milliseconds since the start of the run: Event.Time on the same clock.
	Time int64 `json:"time"`
	Now  Now   `json:"now"`
	// Items holds the newest event of each of the last Limits.Items items, oldest event first: where each item is.
	// What has ended (done, or with an Into) is among them.
	Items []Event `json:"items"`
	// Log holds the last Limits.Log events, oldest first.
	Log []Event `json:"log"`
	// Objects is what the store holds, by key, at most Limits.Objects of them. The number left out is
	// Now.Counts.Store - len(Objects).
	Objects []Object `json:"objects"`
	// Clients is how many pages are connected to /events.
	Clients int    `json:"clients"`
	Limits  Limits `json:"limits"`
}

// Resource is what the informer watches, and how its worker is set.
type Resource struct {
	// Name is the plural name, Group and Version the API's; Group is empty for the core group.
	Name    string `json:"name"`
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	// Namespace is the one that is watched; empty means all of them, or that objects of this kind have none.
	Namespace  string `json:"namespace"`
	Namespaced bool   `json:"namespaced"`
	// MetadataOnly: the objects' content never leaves the API server. It is so for everything that is named
	// a secret.
	MetadataOnly bool `json:"metadataOnly"`
	// Workers is how many keys can be worked on at once, WorkTimeMs how long one takes.
	Workers    int   `json:"workers"`
	WorkTimeMs int64 `json:"workTimeMs"`
	// FailEvery: with N, every Nth piece of work fails. 0 is never.
	FailEvery int `json:"failEvery"`
}

// Object is one entry of the store.
type Object struct {
	Key             string `json:"key"`
	Item            string `json:"item"`
	ResourceVersion string `json:"resourceVersion"`
}

// Limits is what bounds the server's memory.
type Limits struct {
	// Ring is how many events are kept for clients that are behind.
	Ring int `json:"ring"`
	// Batch is the largest number of events in one message.
	Batch int `json:"batch"`
	// FlushMs is the shortest time between two messages, in milliseconds.
	FlushMs int64 `json:"flushMs"`
	// Items, Log and Objects are the longest that the lists of State get.
	Items   int `json:"items"`
	Log     int `json:"log"`
	Objects int `json:"objects"`
	// Clients is how many pages may be connected to /events at once; one more is refused (503).
	Clients int `json:"clients"`
}

// Control is the answer to a POST.
type Control struct {
	// Now is how things stand after it.
	Now Now `json:"now"`
	// Stepped is what /step moved; null if nothing was held, and for the other requests.
	Stepped *Held `json:"stepped"`
}
