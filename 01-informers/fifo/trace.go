package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/lesson"
)

// call is one call of a reflector to its queue.
type call struct {
	text string
	make func(cache.Queue) error
}

// trace continues from storeBefore. The last list lacks c and d, and no event reported their deletion.
var trace = []call{
	{"Add c@11", on(cache.Queue.Add, "c", 11)},
	{"Update a@12", on(cache.Queue.Update, "a", 12)},
	{"Update c@13", on(cache.Queue.Update, "c", 13)},
	{"Delete b@14", on(cache.Queue.Delete, "b", 14)},
	{"Delete b@14, a duplicate", on(cache.Queue.Delete, "b", 14)},
	{"Add b@15, recreated", on(cache.Queue.Add, "b", 15)},
	{"Bookmark 16", bookmark(16)},
	{"Replace with the list a@12 b@15 e@17, of resourceVersion 18", replace(18, object("a", 12), object("b", 15), object("e", 17))},
	{"Resync", cache.Queue.Resync},
}

// storeBefore returns the consumer's store before the trace.
func storeBefore() known {
	return known{object("a", 1), object("b", 2), object("d", 3)}
}

// on calls a method of the queue with an object.
func on(method func(cache.Queue, any) error, name string, version int) func(cache.Queue) error {
	return func(queue cache.Queue) error { return method(queue, object(name, version)) }
}

func replace(version int, list ...*corev1.ConfigMap) func(cache.Queue) error {
	return func(queue cache.Queue) error {
		objects := make([]any, len(list))
		for i, obj := range list {
			objects[i] = obj
		}
		return queue.Replace(objects, strconv.Itoa(version))
	}
}

// bookmark adds a bookmark if the queue has a method for it, as a reflector does. DeltaFIFO has none.
func bookmark(version int) func(cache.Queue) error {
	return func(queue cache.Queue) error {
		if queue, ok := queue.(cache.ReflectorBookmarkStore); ok {
			return queue.Bookmark(strconv.Itoa(version))
		}
		return nil
	}
}

func apply(queue cache.Queue, trace []call) {
	for _, call := range trace {
		lesson.Check(call.make(queue))
	}
}

func object(name string, version int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: strconv.Itoa(version)}}
}

// known is a consumer's store, with the methods that a queue calls. It lists its keys in order, a real store does not.
type known []*corev1.ConfigMap

func (k known) ListKeys() []string {
	keys := make([]string, len(k))
	for i, obj := range k {
		keys[i] = obj.Name
	}
	return keys
}

func (k known) GetByKey(key string) (any, bool, error) {
	i := slices.IndexFunc(k, func(obj *corev1.ConfigMap) bool { return obj.Name == key })
	if i < 0 {
		return nil, false, nil
	}
	return k[i], true, nil
}

// short returns NAME@RESOURCEVERSION of an object, or a text for the other contents of a delta.
func short(obj any) string {
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		return obj.Name + "@" + obj.ResourceVersion
	case cache.DeletedFinalStateUnknown:
		if obj.Obj == nil {
			return "(" + obj.Key + "@?)"
		}
		return "(" + short(obj.Obj) + ")"
	case cache.ReplacedAllInfo:
		return "[" + shortAll(obj.Objects) + "] at " + obj.ResourceVersion
	case cache.BookmarkInfo:
		return obj.ResourceVersion
	case cache.SyncAllInfo:
		return ""
	}
	return fmt.Sprintf("%T", obj)
}

func shortAll[T any](objects []T) string {
	all := make([]string, len(objects))
	for i, obj := range objects {
		all[i] = short(obj)
	}
	return strings.Join(all, " ")
}
