// Package deltas is exercise 06b: apply the deltas of a queue to a store and a handler.
package deltas

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/shared/exercise/check"
)

// Entry is what the reader writes.
type Entry func(delta cache.Delta, store cache.Store, handler cache.ResourceEventHandler, initial bool) error

// Check applies sequences of deltas.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("Added, Updated and Deleted change the store and reach the handler", func(b *check.B) {
		i := newInformer(b, work.Entry)
		i.apply(cache.Added, object("a", "1"))
		i.apply(cache.Updated, object("a", "2"))
		i.apply(cache.Added, object("b", "3"))
		i.apply(cache.Deleted, object("a", "4"))
		i.calls("add a@1", "update a@1 to a@2", "add b@3", "delete a@4")
		i.content("b@3")
	})
	if !ok {
		return
	}
	t.Behaviour("an Added for an object that is known is an update", func(b *check.B) {
		i := newInformer(b, work.Entry)
		i.apply(cache.Added, object("a", "1"))
		i.apply(cache.Added, object("a", "2"))
		i.calls("add a@1", "update a@1 to a@2")
	})
	t.Behaviour("an Updated for an object that is not known is an addition", func(b *check.B) {
		i := newInformer(b, work.Entry)
		i.apply(cache.Updated, object("a", "1"))
		i.calls("add a@1")
		i.content("a@1")
	})
	t.Behaviour("the first list is added", func(b *check.B) {
		i := newInformer(b, work.Entry)
		i.initial = true
		i.apply(cache.ReplacedAll, list("a@1", "b@2"))
		i.apply(cache.Added, object("c", "3"))
		i.calls("add a@1 of the first list", "add b@2 of the first list", "add c@3 of the first list")
		i.content("a@1", "b@2", "c@3")
	})
	t.Behaviour("a new list adds and updates", func(b *check.B) {
		i := newInformer(b, work.Entry)
		i.apply(cache.Added, object("a", "1"))
		i.apply(cache.ReplacedAll, list("a@5", "c@6"))
		i.calls("add a@1", "update a@1 to a@5", "add c@6")
		i.content("a@5", "c@6")
	})
	t.Behaviour("what a new list lacks is deleted from the store and reported", func(b *check.B) {
		i := newInformer(b, work.Entry)
		i.apply(cache.Added, object("a", "1"))
		i.apply(cache.Added, object("b", "2"))
		i.apply(cache.ReplacedAll, list("b@2"))
		i.content("b@2")
		if !slices.ContainsFunc(i.got, func(call string) bool {
			return strings.HasPrefix(call, "delete a") || strings.HasPrefix(call, "tombstone ")
		}) {
			b.Fatalf("the handler was not called for a, which the new list lacks; it got: %s", strings.Join(i.got, ", "))
		}
	})
	t.Behaviour("what a new list lacks is reported with its final state unknown", func(b *check.B) {
		i := newInformer(b, work.Entry)
		i.apply(cache.Added, object("a", "1"))
		i.apply(cache.Added, object("inn/a", "2"))
		i.apply(cache.ReplacedAll, list("inn/a@3"))
		i.calls("add a@1", "add inn/a@2", "update inn/a@2 to inn/a@3", "tombstone shop/a, last seen a@1")
	})
	t.Behaviour("the store has changed when the handler is called", func(b *check.B) {
		i := newInformer(b, work.Entry)
		i.apply(cache.Added, object("a", "1"))
		i.apply(cache.Updated, object("a", "2"))
		i.apply(cache.Deleted, object("a", "3"))
		i.apply(cache.ReplacedAll, list("b@4"))
		i.apply(cache.ReplacedAll, list())
		if len(i.early) > 0 {
			b.Fatalf("the handler was called before the store had changed: %s", strings.Join(i.early, ", "))
		}
	})
}

// informer is a store and a handler, with the reader's function between them.
type informer struct {
	b       *check.B
	entry   Entry
	store   cache.Store
	initial bool
	// got are the calls of the handler, and early those that came before the store had changed.
	got, early []string
}

func newInformer(b *check.B, entry Entry) *informer {
	return &informer{b: b, entry: entry, store: cache.NewStore(cache.MetaNamespaceKeyFunc)}
}

// object is one in the namespace shop, if the name has no other one in front.
func object(name, version string) *metav1.PartialObjectMetadata {
	namespace, name, found := strings.Cut(name, "/")
	if !found {
		namespace, name = "shop", namespace
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, ResourceVersion: version}}
}

func list(texts ...string) cache.ReplacedAllInfo {
	info := cache.ReplacedAllInfo{ResourceVersion: "10"}
	for _, text := range texts {
		name, version, _ := strings.Cut(text, "@")
		info.Objects = append(info.Objects, object(name, version))
	}
	return info
}

func text(o any) string {
	if o, ok := o.(*metav1.PartialObjectMetadata); ok {
		return strings.TrimPrefix(o.Namespace+"/"+o.Name, "shop/") + "@" + o.ResourceVersion
	}
	return fmt.Sprintf("a %T", o)
}

func (i *informer) apply(kind cache.DeltaType, o any) {
	what := text(o)
	if info, ok := o.(cache.ReplacedAllInfo); ok {
		var all []string
		for _, o := range info.Objects {
			all = append(all, text(o))
		}
		what = "[" + strings.Join(all, " ") + "]"
	}
	i.b.Event("%s %s", kind, what)
	if err := i.entry(cache.Delta{Type: kind, Object: o}, i.store, i, i.initial); err != nil {
		i.b.Fatalf("%s %s: Apply returned an error: %v", kind, what, err)
	}
}

// OnAdd notes a call of the handler.
func (i *informer) OnAdd(o any, initial bool) {
	call := "add " + text(o)
	if initial {
		call += " of the first list"
	}
	i.note(call, o, true)
}

// OnUpdate notes a call of the handler.
func (i *informer) OnUpdate(before, after any) {
	i.note(fmt.Sprintf("update %s to %s", text(before), text(after)), after, true)
}

// OnDelete notes a call of the handler.
func (i *informer) OnDelete(o any) {
	if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
		i.note(fmt.Sprintf("tombstone %s, last seen %s", unknown.Key, text(unknown.Obj)), unknown.Obj, false)
		return
	}
	i.note("delete "+text(o), o, false)
}

// note notes a call, and whether the store has the object as it should be by now.
func (i *informer) note(call string, o any, present bool) {
	i.b.Event("  %s", call)
	i.got = append(i.got, call)
	stored, found, err := i.store.Get(o)
	if err != nil || found != present || (present && stored != o) {
		i.early = append(i.early, call)
	}
}

// calls compares the calls of the handler. Those for one list may come in any order.
func (i *informer) calls(want ...string) {
	got := slices.Sorted(slices.Values(i.got))
	slices.Sort(want)
	if !slices.Equal(got, want) {
		i.b.Fatalf("the handler got [%s], and should get [%s]", strings.Join(got, ", "), strings.Join(want, ", "))
	}
}

func (i *informer) content(want ...string) {
	var got []string
	for _, o := range i.store.List() {
		got = append(got, text(o))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		i.b.Fatalf("the store has [%s], and should have [%s]", strings.Join(got, ", "), strings.Join(want, ", "))
	}
}
