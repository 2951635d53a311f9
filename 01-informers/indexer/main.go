// Package main is the lesson on the indexer: the store that an informer fills, its keys, its indexes, and two
// mistakes that break it. It needs no cluster.
//
// Source, k8s.io/client-go v0.37.2, under tools/cache:
//
//	store.go              Store, MetaNamespaceKeyFunc, NewIndexer; `cache` adds keys to a ThreadSafeStore
//	thread_safe_store.go  threadSafeMap: a map, a lock, and storeIndex, which keeps the indexes
//	index.go              Indexer, IndexFunc, NamespaceIndex, TypedIndexers
//	object-names.go       ObjectName: a key with its parts
package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/lesson"
)

func main() { lesson.Main(program) }

var program = lesson.Lesson{
	Name:    "indexer",
	Shows:   "The store of an informer: keys, indexes, a lookup with and without an index, and how to break it.",
	Offline: true,
	Run: func(_ context.Context, env *lesson.Env) error {
		for _, step := range []func(*lesson.Env) error{
			showKeys, showStore, showIndexes, showLookups, breakByError, breakByMutation,
		} {
			if err := step(env); err != nil {
				return err
			}
		}
		return nil
	},
}

func showKeys(env *lesson.Env) error {
	env.Printf("1. Keys\n")
	for _, obj := range []any{
		pod("shop", "web-0"),
		&corev1.Node{ObjectMeta: pod("", "node-1").ObjectMeta},
	} {
		key, err := cache.MetaNamespaceKeyFunc(obj)
		if err != nil {
			return fmt.Errorf("computing a key: %w", err)
		}
		name, err := cache.ParseObjectName(key)
		if err != nil {
			return fmt.Errorf("parsing a key: %w", err)
		}
		env.Printf("   %-12T key %-12q namespace %-7q name %q\n", obj, key, name.Namespace, name.Name)
	}
	return nil
}

func showStore(env *lesson.Env) error {
	env.Printf("\n2. A store has the latest object for each key\n")
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	for _, step := range []struct {
		after string
		call  func() error
	}{
		{"two Adds", func() error {
			return cmp.Or(store.Add(pod("shop", "web-0")), store.Add(pod("shop", "web-1")))
		}},
		{"a Delete", func() error { return store.Delete(pod("shop", "web-0")) }},
		{"a Replace", func() error { return store.Replace([]any{pod("shop", "web-7")}, "70") }},
	} {
		if err := step.call(); err != nil {
			return fmt.Errorf("writing to the store: %w", err)
		}
		env.Printf("   %-18s %v\n", "after "+step.after+":", sorted(store.ListKeys()))
	}
	_, found, err := store.GetByKey("shop/web-1")
	env.Printf("   shop/web-1 found:  %t\n", found)
	return err
}

func showIndexes(env *lesson.Env) error {
	env.Printf("\n3. Indexes: a name, and a function that returns the values of an object\n")
	indexer, err := newIndexer(shop()...)
	if err != nil {
		return err
	}
	for _, name := range []string{cache.NamespaceIndex, byNode, byApp, byOwner} {
		env.Printf("   %s\n", name)
		for _, value := range sorted(indexer.ListIndexFuncValues(name)) {
			keys, err := indexer.IndexKeys(name, value)
			if err != nil {
				return fmt.Errorf("looking up %s=%s: %w", name, value, err)
			}
			env.Printf("     %-12s %s\n", value, strings.Join(keys, " "))
		}
	}
	// Index takes an object instead of a value, and returns the objects that share a value with it.
	sameNode, err := indexer.Index(byNode, shop()[0])
	if err != nil {
		return fmt.Errorf("looking up the Pods on the same node: %w", err)
	}
	env.Printf("   Index: on the node of shop/web-0 there are %d Pods\n", len(sameNode))
	_, err = indexer.ByIndex("by-image", "none")
	env.Printf("   ByIndex with an unknown name: %v\n", err)
	return nil
}

func showLookups(env *lesson.Env) error {
	env.Printf("\n4. One lookup in %d Pods: those on one node\n", fleetSize)
	indexer, err := newFleet()
	if err != nil {
		return err
	}
	without, examined := scan(indexer, "node-7")
	with, err := lookUp(indexer, "node-7")
	if err != nil {
		return err
	}
	env.Printf("   without an index:  %d found, %d examined\n", len(without), examined)
	env.Printf("   with an index:     %d found, %d examined: %d times fewer\n", len(with), len(with), examined/len(with))
	slow, fast, err := measure(indexer, "node-7")
	if err != nil {
		return err
	}
	env.Printf("   measured here:     %v without, %v with: %.0f times faster\n",
		slow.Round(time.Microsecond), fast.Round(time.Microsecond), float64(slow)/float64(fast))
	return nil
}

func sorted(values []string) []string {
	return slices.Sorted(slices.Values(values))
}
