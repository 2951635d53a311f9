package main

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/lesson"
)

// recordingStore records the calls of the reflector. A reflector calls these four methods of a store, and Resync.
type recordingStore struct {
	cache.Store
	calls lesson.Record[string]
}

func newStore() *recordingStore {
	return &recordingStore{Store: cache.NewStore(cache.MetaNamespaceKeyFunc)}
}

func (s *recordingStore) Add(object any) error {
	s.record("Add", object)
	return s.Store.Add(object)
}

func (s *recordingStore) Update(object any) error {
	s.record("Update", object)
	return s.Store.Update(object)
}

func (s *recordingStore) Delete(object any) error {
	s.record("Delete", object)
	return s.Store.Delete(object)
}

func (s *recordingStore) Replace(objects []any, version string) error {
	s.record("Replace", objects...)
	return s.Store.Replace(objects, version)
}

func (s *recordingStore) record(verb string, objects ...any) {
	s.calls.Add(fmt.Sprintf("%s(%s)", verb, strings.Join(names(objects), " ")))
}

// names returns the names of Pods, sorted, because a store has no order.
func names(objects []any) []string {
	var all []string
	for _, object := range objects {
		all = append(all, object.(*corev1.Pod).Name)
	}
	slices.Sort(all)
	return all
}
