package main

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/lesson"
)

// recorder is a handler that records its notifications. It implements cache.TypedResourceEventHandler, so that
// it needs no type assertion and does not unwrap tombstones.
type recorder struct {
	// gate, if it is set, blocks each call until it is closed.
	gate          <-chan struct{}
	notifications lesson.Record[notification]
}

var _ cache.TypedResourceEventHandler[*corev1.ConfigMap] = &recorder{}

// notification is one call of the handler.
type notification struct {
	// kind is added, updated, resynced (an update with the same resourceVersion) or deleted.
	kind string
	name string
	// initial is true for an object that existed when the informer started or the handler was added.
	initial bool
	object  *corev1.ConfigMap
	// deleted is the argument of OnDelete.
	deleted coreinformers.DeletedConfigMap
}

// OnAdd records an object that is new to the handler.
func (r *recorder) OnAdd(object *corev1.ConfigMap, isInInitialList bool) {
	r.record(notification{kind: "added", name: object.Name, initial: isInInitialList, object: object})
}

// OnUpdate records a change, and distinguishes it from a resync.
func (r *recorder) OnUpdate(before, after *corev1.ConfigMap) {
	kind := "updated"
	if before.ResourceVersion == after.ResourceVersion {
		kind = "resynced"
	}
	r.record(notification{kind: kind, name: after.Name, object: after})
}

// OnDelete records a deletion. The name is always known, the object may not be: see cache.DeletedObject.
func (r *recorder) OnDelete(deleted coreinformers.DeletedConfigMap) {
	r.record(notification{kind: "deleted", name: deleted.GetName(), object: deleted.OptionalObj, deleted: deleted})
}

func (r *recorder) record(n notification) {
	if r.gate != nil {
		<-r.gate
	}
	r.notifications.Add(n)
}

// count returns the number of notifications of a kind, or of all if kind is empty.
func (r *recorder) count(kind string) int {
	count := 0
	for _, n := range r.all() {
		if kind == "" || n.kind == kind {
			count++
		}
	}
	return count
}

func (r *recorder) all() []notification { return r.notifications.All() }

// of returns the notifications about one object, without resyncs: "added 1", "updated 2".
func (r *recorder) of(name string) []string {
	var texts []string
	for _, n := range r.all() {
		if n.name == name && n.kind != "resynced" {
			texts = append(texts, n.kind+" "+n.object.Data["value"])
		}
	}
	return texts
}

// last returns the object of the latest notification with this name.
func (r *recorder) last(name string) *corev1.ConfigMap {
	for _, n := range slices.Backward(r.all()) {
		if n.name == name {
			return n.object
		}
	}
	return nil
}

func (r *recorder) deletions() (deletions []coreinformers.DeletedConfigMap) {
	for _, n := range r.all() {
		if n.kind == "deleted" {
			deletions = append(deletions, n.deleted)
		}
	}
	return deletions
}
