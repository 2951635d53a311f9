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
	"context"
	"errors"
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
	Run: func(_ context.Context, env *lesson.Env) {
		showKeys(env)
		showStore(env)
		showIndexes(env)
		showLookups(env)
		breakByError(env)
		breakByMutation(env)
	},
}

func showKeys(env *lesson.Env) {
	env.Printf("1. Keys\n")
	for _, obj := range []any{
		pod("shop", "web-0"),
		&corev1.Node{ObjectMeta: pod("", "node-1").ObjectMeta},
	} {
		key := lesson.Must(cache.MetaNamespaceKeyFunc(obj))
		name := lesson.Must(cache.ParseObjectName(key))
		env.Printf("   %-12T key %-12q namespace %-7q name %q\n", obj, key, name.Namespace, name.Name)
	}
}

func showStore(env *lesson.Env) {
	env.Printf("\n2. A store has the latest object for each key\n")
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	show := func(after string, errs ...error) {
		lesson.Check(errors.Join(errs...))
		env.Printf("   %-18s %v\n", "after "+after+":", sorted(store.ListKeys()))
	}
	show("two Adds", store.Add(pod("shop", "web-0")), store.Add(pod("shop", "web-1")))
	show("a Delete", store.Delete(pod("shop", "web-0")))
	show("a Replace", store.Replace([]any{pod("shop", "web-7")}, "70"))
	_, found, err := store.GetByKey("shop/web-1")
	lesson.Check(err)
	env.Printf("   shop/web-1 found:  %t\n", found)
}

func showIndexes(env *lesson.Env) {
	env.Printf("\n3. Indexes: a name, and a function that returns the values of an object\n")
	indexer := newIndexer(shop()...)
	for _, name := range []string{cache.NamespaceIndex, byNode, byApp, byOwner} {
		env.Printf("   %s\n", name)
		for _, value := range sorted(indexer.ListIndexFuncValues(name)) {
			env.Printf("     %-12s %s\n", value, strings.Join(lesson.Must(indexer.IndexKeys(name, value)), " "))
		}
	}
	// Index takes an object instead of a value, and returns the objects that share a value with it.
	sameNode := lesson.Must(indexer.Index(byNode, shop()[0]))
	env.Printf("   Index: on the node of shop/web-0 there are %d Pods\n", len(sameNode))
	_, err := indexer.ByIndex("by-image", "none")
	env.Printf("   ByIndex with an unknown name: %v\n", err)
}

func showLookups(env *lesson.Env) {
	env.Printf("\n4. One lookup in %d Pods: those on one node\n", fleetSize)
	indexer := newFleet()
	without, examined := scan(indexer, "node-7")
	with := lookUp(indexer, "node-7")
	env.Printf("   without an index:  %d found, %d examined\n", len(without), examined)
	env.Printf("   with an index:     %d found, %d examined: %d times fewer\n", len(with), len(with), examined/len(with))
	slow, fast := measure(indexer, "node-7")
	env.Printf("   measured here:     %v without, %v with: %.0f times faster\n",
		slow.Round(time.Microsecond), fast.Round(time.Microsecond), float64(slow)/float64(fast))
}

func sorted(values []string) []string {
	return slices.Sorted(slices.Values(values))
}
