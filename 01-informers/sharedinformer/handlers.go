package main

import (
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// recorder is a handler that remembers what it was told. It implements
// cache.TypedResourceEventHandler: no cast, and no tombstone to unwrap.
type recorder struct {
	// gate, where there is one, is waited for in each call.
	gate <-chan struct{}

	calls atomic.Int32
	mu    sync.Mutex
	told  []notification
	gone  []coreinformers.DeletedConfigMap
}

var _ cache.TypedResourceEventHandler[*corev1.ConfigMap] = &recorder{}

// notification is one call.
type notification struct {
	// kind is added, updated, resynced (an update with the resourceVersion unchanged) or deleted.
	kind string
	name string
	// initial says of an addition that the object was there when the informer, or the handler, began.
	initial bool
	object  *corev1.ConfigMap
}

// OnAdd remembers an object that is new to the handler.
func (r *recorder) OnAdd(object *corev1.ConfigMap, isInInitialList bool) {
	r.record(notification{kind: "added", name: object.Name, initial: isInInitialList, object: object})
}

// OnUpdate remembers a change, and tells it from a resync.
func (r *recorder) OnUpdate(before, after *corev1.ConfigMap) {
	kind := "updated"
	if before.ResourceVersion == after.ResourceVersion {
		kind = "resynced"
	}
	r.record(notification{kind: kind, name: after.Name, object: after})
}

// OnDelete remembers a deletion. The name is known in any case, the object not: see cache.DeletedObject.
func (r *recorder) OnDelete(deleted coreinformers.DeletedConfigMap) {
	r.record(notification{kind: "deleted", name: deleted.GetName(), object: deleted.OptionalObj})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone = append(r.gone, deleted)
}

func (r *recorder) record(told notification) {
	r.calls.Add(1)
	defer r.calls.Add(-1)
	if r.gate != nil {
		<-r.gate
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, told)
}

// running is the number of calls that have not returned.
func (r *recorder) running() int { return int(r.calls.Load()) }

// count counts what the handler was told, of one kind or, where kind is empty, of all.
func (r *recorder) count(kind string) int {
	count := 0
	for _, told := range r.all() {
		if kind == "" || told.kind == kind {
			count++
		}
	}
	return count
}

func (r *recorder) all() []notification {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.told)
}

// of is what the handler was told of one object, resyncs left out: "added 1", "updated 2".
func (r *recorder) of(name string) []string {
	var told []string
	for _, n := range r.all() {
		if n.name == name && n.kind != "resynced" {
			told = append(told, n.kind+" "+n.object.Data["value"])
		}
	}
	return told
}

// last is the object of the latest notification about it.
func (r *recorder) last(name string) *corev1.ConfigMap {
	for _, n := range slices.Backward(r.all()) {
		if n.name == name {
			return n.object
		}
	}
	return nil
}

func (r *recorder) deletions() []coreinformers.DeletedConfigMap {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.gone)
}
