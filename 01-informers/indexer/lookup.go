package main

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

const (
	fleetSize = 10_000
	nodes     = 100
)

// newFleet is an indexer with fleetSize pods, spread evenly.
func newFleet() (cache.Indexer, error) {
	indexer := newIndexer()
	for i := range fleetSize {
		err := indexer.Add(pod(fmt.Sprintf("ns-%d", i%20), fmt.Sprintf("pod-%d", i),
			onNode(fmt.Sprintf("node-%d", i%nodes)),
			withApp(fmt.Sprintf("app-%d", i%40)),
			ownedBy(types.UID(fmt.Sprintf("uid-%d", i%500)))))
		if err != nil {
			return nil, fmt.Errorf("filling the indexer: %w", err)
		}
	}
	return indexer, nil
}

// scan finds the pods of a node without an index, and says how many it looked at.
func scan(store cache.Store, node string) (found []*corev1.Pod, looked int) {
	for _, obj := range store.List() {
		looked++
		if pod := obj.(*corev1.Pod); pod.Spec.NodeName == node {
			found = append(found, pod)
		}
	}
	return found, looked
}

// lookUp finds them with one. It looks at those that it finds, and at no other.
func lookUp(indexer cache.Indexer, node string) ([]*corev1.Pod, error) {
	objects, err := indexer.ByIndex(byNode, node)
	if err != nil {
		return nil, fmt.Errorf("looking up the pods of %s: %w", node, err)
	}
	found := make([]*corev1.Pod, len(objects))
	for i, obj := range objects {
		found[i] = obj.(*corev1.Pod)
	}
	return found, nil
}

// measure returns the time of one look-up without and with the index.
func measure(indexer cache.Indexer, node string) (without, with time.Duration, err error) {
	const scans, lookUps = 100, 10_000
	start := time.Now()
	for range scans {
		scan(indexer, node)
	}
	without = time.Since(start) / scans
	start = time.Now()
	for range lookUps {
		if _, err := lookUp(indexer, node); err != nil {
			return 0, 0, err
		}
	}
	return without, time.Since(start) / lookUps, nil
}

// writeCosts counts the calls of one index function that each verb of an indexer makes.
func writeCosts() (map[string]int, error) {
	calls := 0
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.TypedIndexersToIndexers(cache.TypedIndexers[*corev1.Pod]{
		byNode: func(pod *corev1.Pod) ([]string, error) {
			calls++
			return nodeOf(pod)
		},
	}))
	before, after := pod("shop", "web-0", onNode("node-1")), pod("shop", "web-0", onNode("node-2"))
	costs := map[string]int{}
	for _, step := range []struct {
		verb string
		call func() error
	}{
		{"Add", func() error { return indexer.Add(before) }},
		{"Update", func() error { return indexer.Update(after) }},
		{"Get", func() error { _, _, err := indexer.Get(after); return err }},
		{"ByIndex", func() error { _, err := indexer.ByIndex(byNode, "node-2"); return err }},
		{"Index", func() error { _, err := indexer.Index(byNode, after); return err }},
		{"Delete", func() error { return indexer.Delete(after) }},
	} {
		calls = 0
		if err := step.call(); err != nil {
			return nil, fmt.Errorf("counting the calls of %s: %w", step.verb, err)
		}
		costs[step.verb] = calls
	}
	return costs, nil
}
