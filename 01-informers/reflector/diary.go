package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
)

// diary is a store that notes what the reflector does to it. A reflector knows no more of a store than
// these four methods, and Resync.
type diary struct {
	cache.Store

	mu    sync.Mutex
	notes []string
}

func newDiary() *diary { return &diary{Store: cache.NewStore(cache.MetaNamespaceKeyFunc)} }

// Add implements cache.ReflectorStore.
func (d *diary) Add(object any) error {
	d.note("Add", object)
	return d.Store.Add(object)
}

// Update implements cache.ReflectorStore.
func (d *diary) Update(object any) error {
	d.note("Update", object)
	return d.Store.Update(object)
}

// Delete implements cache.ReflectorStore.
func (d *diary) Delete(object any) error {
	d.note("Delete", object)
	return d.Store.Delete(object)
}

// Replace implements cache.ReflectorStore.
func (d *diary) Replace(objects []any, version string) error {
	d.note("Replace", objects...)
	return d.Store.Replace(objects, version)
}

func (d *diary) note(verb string, objects ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notes = append(d.notes, fmt.Sprintf("%s(%s)", verb, strings.Join(names(objects), " ")))
}

// all returns what was noted since the last take.
func (d *diary) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.notes)
}

func (d *diary) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	taken := d.notes
	d.notes = nil
	return taken
}

// names returns the names of objects, sorted: a store has no order.
func names(objects []any) []string {
	var all []string
	for _, object := range objects {
		accessor, err := apimeta.Accessor(object)
		if err != nil {
			all = append(all, fmt.Sprintf("%T", object))
			continue
		}
		all = append(all, accessor.GetName())
	}
	slices.Sort(all)
	return all
}
