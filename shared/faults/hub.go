package faults

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// hubLimit is how long an event may take from the API server to here.
const hubLimit = time.Minute

// hub watches kinds of objects in all namespaces, and keeps for each namespace all that happened in it, and to the objects
// of the cluster whose names begin with it.
type hub struct {
	ctx    context.Context // until it ends, kinds are watched
	client dynamic.Interface
	mapper apimeta.RESTMapper

	mu      sync.Mutex
	changed *sync.Cond
	seen    map[schema.GroupResource]int64 // the resourceVersion of the last event
	started map[schema.GroupResource]bool
	logs    map[string]*history
}

// history is what happened in a namespace, by kind. Indexes into it are positions.
type history struct {
	order  int
	events map[schema.GroupResource][]happening
	live   map[schema.GroupResource]map[types.UID]*unstructured.Unstructured
	born   map[types.UID]int // the order of the first event of each object
}

// happening is one event of a watch.
type happening struct {
	order  int // among those of all kinds
	what   watch.EventType
	object *unstructured.Unstructured
}

func newHub(ctx context.Context, client dynamic.Interface, mapper apimeta.RESTMapper) *hub {
	h := &hub{
		ctx: ctx, client: client, mapper: mapper,
		seen: map[schema.GroupResource]int64{}, started: map[schema.GroupResource]bool{}, logs: map[string]*history{},
	}
	h.changed = sync.NewCond(&h.mu)
	return h
}

func newHistory() *history {
	return &history{
		events: map[schema.GroupResource][]happening{},
		live:   map[schema.GroupResource]map[types.UID]*unstructured.Unstructured{},
		born:   map[types.UID]int{},
	}
}

// watch begins to watch a kind, unless it is watched. What there is by then is in no history.
func (h *hub) watch(gvk schema.GroupVersionKind) error {
	mapping, err := h.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return err
	}
	resource := mapping.Resource.GroupResource()
	h.mu.Lock()
	begun := h.started[resource]
	h.started[resource] = true
	h.mu.Unlock()
	if begun {
		return nil
	}
	list, err := h.client.Resource(mapping.Resource).List(h.ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing %s: %w", resource, err)
	}
	rv := list.GetResourceVersion()
	h.mu.Lock()
	h.seen[resource], _ = strconv.ParseInt(rv, 10, 64)
	h.mu.Unlock()
	go h.follow(h.ctx, mapping.Resource, rv)
	return nil
}

// follow watches until the context ends; a watch that ends is begun again where it ended.
func (h *hub) follow(ctx context.Context, resource schema.GroupVersionResource, rv string) {
	for ctx.Err() == nil {
		stream, err := h.client.Resource(resource).Watch(ctx, metav1.ListOptions{ResourceVersion: rv})
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		for event := range stream.ResultChan() {
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok || event.Type == watch.Error {
				break
			}
			rv = object.GetResourceVersion()
			h.note(resource.GroupResource(), event.Type, object)
		}
		stream.Stop()
	}
}

func (h *hub) note(resource schema.GroupResource, what watch.EventType, object *unstructured.Unstructured) {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.changed.Broadcast()
	h.seen[resource], _ = strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	log := h.logs[h.namespaceOf(object)]
	if log == nil {
		return
	}
	log.order++
	if what == watch.Added {
		log.born[object.GetUID()] = log.order
	}
	log.events[resource] = append(log.events[resource], happening{log.order, what, object})
	if log.live[resource] == nil {
		log.live[resource] = map[types.UID]*unstructured.Unstructured{}
	}
	if what == watch.Deleted {
		delete(log.live[resource], object.GetUID())
	} else {
		log.live[resource][object.GetUID()] = object
	}
}

// namespaceOf is the namespace whose history has an object: its own, or that of which the name of an object of the cluster
// begins with.
func (h *hub) namespaceOf(object *unstructured.Unstructured) string {
	if namespace := object.GetNamespace(); namespace != "" {
		return namespace
	}
	for namespace := range h.logs {
		if strings.HasPrefix(object.GetName(), clusterName(namespace, "")) {
			return namespace
		}
	}
	return ""
}

// open begins the history of a namespace, close ends it.
func (h *hub) open(namespace string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.logs[namespace] = newHistory()
}

func (h *hub) close(namespace string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.logs, namespace)
}

// of is the history of a namespace. One that is closed has none, and a step that does not end may still ask for it.
func (h *hub) of(namespace string) *history {
	if log := h.logs[namespace]; log != nil {
		return log
	}
	return newHistory()
}

// await waits until the history has a write: the event of its resourceVersion, or what is told by until.
func (h *hub) await(resource schema.GroupResource, until func(seen int64) bool) error {
	limit := time.AfterFunc(hubLimit, h.changed.Broadcast)
	defer limit.Stop()
	begin := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.started[resource] && !until(h.seen[resource]) {
		if time.Since(begin) >= hubLimit {
			return fmt.Errorf("the watch of %s is more than %v behind", resource, hubLimit)
		}
		h.changed.Wait()
	}
	return nil
}

// awaitVersion waits until the event of a write has come.
func (h *hub) awaitVersion(resource schema.GroupResource, version string) error {
	wanted, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return nil //nolint:nilerr // A response without a resourceVersion is of no write that is watched.
	}
	return h.await(resource, func(seen int64) bool { return seen >= wanted })
}

// awaitDeletion waits until an object is gone, or is being deleted.
func (h *hub) awaitDeletion(resource schema.GroupResource, namespace string, uid types.UID) error {
	return h.await(resource, func(int64) bool {
		object := h.of(namespace).live[resource][uid]
		return object == nil || object.GetDeletionTimestamp() != nil
	})
}

// awaitGone waits until an object is gone.
func (h *hub) awaitGone(resource schema.GroupResource, namespace string, uid types.UID) error {
	return h.await(resource, func(int64) bool { return h.of(namespace).live[resource][uid] == nil })
}

// from returns the events of a kind from a position on.
func (h *hub) from(namespace string, resource schema.GroupResource, position int) []happening {
	h.mu.Lock()
	defer h.mu.Unlock()
	events := h.of(namespace).events[resource]
	return events[min(position, len(events)):]
}

// live returns the objects of a kind, the oldest first. Their creationTimestamps are too coarse for that, and the API server
// makes names up as it likes.
func (h *hub) live(namespace string, resource schema.GroupResource) []*unstructured.Unstructured {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []*unstructured.Unstructured
	log := h.of(namespace)
	for _, object := range log.live[resource] {
		all = append(all, object)
	}
	slices.SortFunc(all, func(a, b *unstructured.Unstructured) int {
		return cmp.Compare(log.born[a.GetUID()], log.born[b.GetUID()])
	})
	return all
}

// resources returns the kinds that are watched.
func (h *hub) resources() []schema.GroupResource {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []schema.GroupResource
	for resource := range h.started {
		all = append(all, resource)
	}
	slices.SortFunc(all, func(a, b schema.GroupResource) int { return cmp.Compare(a.String(), b.String()) })
	return all
}

// resourceOf returns the resource of a kind.
func (h *hub) resourceOf(gvk schema.GroupVersionKind) (schema.GroupResource, error) {
	mapping, err := h.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return schema.GroupResource{}, err
	}
	return mapping.Resource.GroupResource(), nil
}
