package behind

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// view is what a cache has of a namespace: all changes but the last ones. It changes only when the check says so, which a cache
// with a watch would not do.
type view struct {
	behind int
	// known is what the API server had when it was looked at last, and pending the changes that the cache lacks.
	known   map[string]client.Object
	pending []changed

	mu      sync.Mutex
	objects map[string]client.Object
	now     client.Reader
}

// changed is an object that was created, changed or deleted. Of one that was deleted there is no object.
type changed struct {
	name   string
	object client.Object
}

func (v *view) reader() client.Reader {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

// refresh looks at what has changed on the API server, and gives the cache all of it but the last changes.
func (v *view) refresh(h *herd) {
	live, known := v.list(h), map[string]client.Object{}
	for _, object := range live {
		known[nameOf(object)] = object
	}
	for name := range v.known {
		if known[name] == nil {
			v.pending = append(v.pending, changed{name, nil})
		}
	}
	for _, object := range live {
		name := nameOf(object)
		if before := v.known[name]; before == nil || before.GetResourceVersion() != object.GetResourceVersion() {
			v.pending = append(v.pending, changed{name, object})
		}
	}
	v.known = known
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.objects == nil {
		v.objects = map[string]client.Object{}
	}
	for len(v.pending) > v.behind {
		if next := v.pending[0]; next.object != nil {
			v.objects[next.name] = next.object
		} else {
			delete(v.objects, next.name)
		}
		v.pending = v.pending[1:]
	}
	// The fake client as a store that can be read in every way that a client has.
	builder := fake.NewClientBuilder().WithScheme(h.client.Scheme()).WithReturnManagedFields()
	for _, object := range v.objects {
		builder = builder.WithObjects(object.DeepCopyObject().(client.Object))
	}
	v.now = builder.Build()
}

// list is what the API server has, by the last change.
func (v *view) list(h *herd) []client.Object {
	var lolcows v1alpha1.LolcowList
	h.must("listing Lolcows", h.client.List(h.b.Context(), &lolcows, client.InNamespace(h.namespace)))
	var cards corev1.ConfigMapList
	h.must("listing ConfigMaps", h.client.List(h.b.Context(), &cards, client.InNamespace(h.namespace)))
	var all []client.Object
	for i := range lolcows.Items {
		all = append(all, &lolcows.Items[i])
	}
	for i := range cards.Items {
		all = append(all, &cards.Items[i])
	}
	slices.SortFunc(all, func(a, b client.Object) int { return cmp.Compare(versionOf(a), versionOf(b)) })
	return all
}

// nameOf names an object among all of the namespace.
func nameOf(object client.Object) string { return fmt.Sprintf("%T %s", object, object.GetName()) }

func versionOf(object client.Object) uint64 {
	version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return version
}
