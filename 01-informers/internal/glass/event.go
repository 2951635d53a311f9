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
// Events without a Key are about a part of the informer and not about an item: a watch that started, a delta with a whole list.
// handmade.Stage lists the stages and the types of events.

// StageControl is what users of the page did, and what is about the informer as a whole. It has no key.
//
//	synced    the first list is in the store
//	paused, resumed
//	stepped   Text says which item moved, or that none waited
const StageControl handmade.Stage = "control"

// controlSynced is the type of the event that the first list is in the store.
const controlSynced = "synced"

// Event is one thing that happened, as the part of the informer in which it happened reports it: see handmade.Stage
// and StageControl for the stages and types.
type Event struct {
	// Seq counts the events of this run from 1, without a gap.
	Seq uint64 `json:"seq"`
	// Time is when it happened, in milliseconds since the start of the run.
	Time int64 `json:"time"`
	handmade.Event
	// Key is the object's namespace/name, or its name if it is cluster-scoped. Empty: the event is not about one item.
	Key string `json:"key,omitempty"`
	// DelayMs is how long a backoff is, in milliseconds.
	DelayMs int64 `json:"delayMs,omitempty"`
	// Text is one short sentence for the user. It never has content of an object.
	Text string `json:"text"`
}

// Batch is the data of a "batch" message: the events of the last 50 ms or more, oldest first, and the state after them. A
// Batch has no events if only Held changed. Without a change the server sends nothing but a comment every 15 s.
type Batch struct {
	Events []Event  `json:"events"`
	Now    Snapshot `json:"now"`
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

// Snapshot has the counts, and what waits at the gate, after the event Seq.
type Snapshot struct {
	// Seq is that of the latest event; 0 before the first.
	Seq uint64 `json:"seq"`
	// Paused: no item moves.
	Paused bool `json:"paused"`
	// Synced: the first list is in the store.
	Synced bool `json:"synced"`
	// Counts is how many deltas, objects or keys each part has.
	Counts Counts `json:"counts"`
	// Totals is how many events with a key each stage has had since the start of the run.
	Totals map[handmade.Stage]uint64 `json:"totals"`
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
	To handmade.Stage `json:"to"`
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
	Time int64    `json:"time"`
	Now  Snapshot `json:"now"`
	// Items are the latest events of the last Limits.Items items, oldest event first: where each item is. Items that have
	// ended (done, or with an Into) are among them.
	Items []Event `json:"items"`
	// Log is the last Limits.Log events, oldest first.
	Log []Event `json:"log"`
	// Objects are those of the store, sorted by key, at most Limits.Objects. Now.Counts.Store - len(Objects) are left out.
	Objects []Object `json:"objects"`
	// Clients is how many pages are connected to /events.
	Clients int `json:"clients"`
}

// Resource is what the informer watches, and the configuration of its workers.
type Resource struct {
	// Name is the plural name. Group is empty for the core group.
	Name    string `json:"name"`
	Group   string `json:"group"`
	Version string `json:"version"`
	// Namespace is the one that is watched. Empty means all namespaces, or a cluster-scoped resource.
	Namespace  string `json:"namespace"`
	Namespaced bool   `json:"namespaced"`
	// MetadataOnly: the API server sends the metadata of objects only. It is set for all resources whose name has "secret".
	MetadataOnly bool `json:"metadataOnly"`
	// Workers is how many keys are processed at once.
	Workers int `json:"workers"`
	// FailEvery: with N, the work fails every Nth time. 0: never.
	FailEvery int `json:"failEvery"`
}

// Object is one entry of the store.
type Object struct {
	Key             string `json:"key"`
	Item            string `json:"item"`
	ResourceVersion string `json:"resourceVersion"`
}

// Control is the response to a POST: the state after it, and the item that /step moved; null if none waited, and for the
// other requests.
type Control struct {
	Now     Snapshot `json:"now"`
	Stepped *Held    `json:"stepped"`
}
