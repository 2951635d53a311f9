// Package main is the lesson on the indexer: the store that an informer fills, its keys, its indexes, and
// two ways to break it. Nothing here needs a cluster.
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
	Shows:   "The store of an informer: keys, indexes, a look-up with and without an index, and how to break it.",
	Offline: true,
	Run:     run,
}

func run(_ context.Context, world *lesson.World) error {
	if err := tellKeys(world); err != nil {
		return err
	}
	if err := tellStore(world); err != nil {
		return err
	}
	if err := tellIndexes(world); err != nil {
		return err
	}
	if err := tellLookUps(world); err != nil {
		return err
	}
	if err := tellCost(world); err != nil {
		return err
	}
	if err := tellWrongIndex(world); err != nil {
		return err
	}
	return tellSharedObject(world)
}

func tellKeys(world *lesson.World) error {
	world.Printf("1. Keys\n")
	for _, obj := range []any{
		pod("shop", "web-0"),
		&corev1.Node{ObjectMeta: pod("", "node-1").ObjectMeta},
	} {
		key, err := cache.MetaNamespaceKeyFunc(obj)
		if err != nil {
			return fmt.Errorf("making a key: %w", err)
		}
		name, err := cache.ParseObjectName(key)
		if err != nil {
			return fmt.Errorf("reading a key: %w", err)
		}
		world.Printf("   %-12T key %-12q namespace %-7q name %q\n", obj, key, name.Namespace, name.Name)
	}
	return nil
}

func tellStore(world *lesson.World) error {
	world.Printf("\n2. A store holds what it was given last under a key\n")
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	for _, name := range []string{"web-0", "web-1"} {
		if err := store.Add(pod("shop", name)); err != nil {
			return fmt.Errorf("adding to the store: %w", err)
		}
	}
	world.Printf("   after two Adds:    %v\n", sorted(store.ListKeys()))
	if err := store.Delete(pod("shop", "web-0")); err != nil {
		return fmt.Errorf("deleting from the store: %w", err)
	}
	world.Printf("   after a Delete:    %v\n", sorted(store.ListKeys()))
	if err := store.Replace([]any{pod("shop", "web-7")}, "70"); err != nil {
		return fmt.Errorf("replacing the store: %w", err)
	}
	world.Printf("   after a Replace:   %v\n", sorted(store.ListKeys()))
	_, found, err := store.GetByKey("shop/web-1")
	if err != nil {
		return fmt.Errorf("getting from the store: %w", err)
	}
	world.Printf("   shop/web-1 found:  %t\n", found)
	return nil
}

func tellIndexes(world *lesson.World) error {
	world.Printf("\n3. Indexes: a name, and a function from an object to the values that it is found under\n")
	indexer := newIndexer()
	for _, pod := range shop() {
		if err := indexer.Add(pod); err != nil {
			return fmt.Errorf("adding to the indexer: %w", err)
		}
	}
	for _, name := range []string{cache.NamespaceIndex, byNode, byApp, byOwner} {
		world.Printf("   %s\n", name)
		for _, value := range sorted(indexer.ListIndexFuncValues(name)) {
			keys, err := indexer.IndexKeys(name, value)
			if err != nil {
				return fmt.Errorf("looking up %s=%s: %w", name, value, err)
			}
			world.Printf("     %-12s %s\n", value, strings.Join(keys, " "))
		}
	}
	// Index takes an object in place of a value: give me all that share a value with this one.
	beside, err := indexer.Index(byNode, shop()[0])
	if err != nil {
		return fmt.Errorf("looking up an object's neighbours: %w", err)
	}
	world.Printf("   Index: on the node of shop/web-0 there are %d pods\n", len(beside))
	_, err = indexer.ByIndex("by-image", "none")
	world.Printf("   ByIndex with a name that is no index: %v\n", err)
	return nil
}

func tellLookUps(world *lesson.World) error {
	world.Printf("\n4. One look-up in %d pods: those of one node\n", fleetSize)
	indexer, err := newFleet()
	if err != nil {
		return err
	}
	without, looked := scan(indexer, "node-7")
	with, err := lookUp(indexer, "node-7")
	if err != nil {
		return err
	}
	world.Printf("   without an index:  %d found, %d looked at\n", len(without), looked)
	world.Printf("   with an index:     %d found, %d looked at: %d times fewer\n", len(with), len(with), looked/len(with))
	slow, fast, err := measure(indexer, "node-7")
	if err != nil {
		return err
	}
	world.Printf("   measured here:     %v without, %v with: %.0f times faster\n",
		slow.Round(time.Microsecond), fast.Round(time.Microsecond), float64(slow)/float64(fast))
	return nil
}

func tellCost(world *lesson.World) error {
	world.Printf("\n5. What an index costs: calls of its function for each write, under the lock of the store\n")
	calls, err := writeCosts()
	if err != nil {
		return err
	}
	for _, verb := range []string{"Add", "Update", "Delete", "Get", "ByIndex", "Index"} {
		world.Printf("   %-8s %d\n", verb, calls[verb])
	}
	return nil
}

func tellWrongIndex(world *lesson.World) error {
	world.Printf("\n6. An index function that returns an error\n")
	return breakByError(func(line string) { world.Printf("   %s\n", line) })
}

func tellSharedObject(world *lesson.World) error {
	world.Printf("\n7. An object that was changed in place: the store hands out its own pointers\n")
	return breakByMutation(func(line string) { world.Printf("   %s\n", line) })
}

func sorted(values []string) []string {
	return slices.Sorted(slices.Values(values))
}
