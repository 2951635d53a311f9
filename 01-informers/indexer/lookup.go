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

// newFleet returns a store with fleetSize Pods, evenly distributed.
func newFleet() (cache.Indexer, error) {
	fleet := make([]*corev1.Pod, fleetSize)
	for i := range fleet {
		fleet[i] = pod(fmt.Sprintf("ns-%d", i%20), fmt.Sprintf("pod-%d", i),
			onNode(fmt.Sprintf("node-%d", i%nodes)),
			withApp(fmt.Sprintf("app-%d", i%40)),
			ownedBy(types.UID(fmt.Sprintf("uid-%d", i%500))))
	}
	return newIndexer(fleet...)
}

// scan returns the Pods on a node, found without an index, and the number of Pods that it examined.
func scan(store cache.Store, node string) (found []*corev1.Pod, examined int) {
	for _, obj := range store.List() {
		examined++
		if pod := obj.(*corev1.Pod); pod.Spec.NodeName == node {
			found = append(found, pod)
		}
	}
	return found, examined
}

// lookUp returns the Pods on a node, with an index. It examines only the Pods that it returns.
func lookUp(indexer cache.Indexer, node string) ([]*corev1.Pod, error) {
	objects, err := indexer.ByIndex(byNode, node)
	if err != nil {
		return nil, fmt.Errorf("looking up the Pods on %s: %w", node, err)
	}
	found := make([]*corev1.Pod, len(objects))
	for i, obj := range objects {
		found[i] = obj.(*corev1.Pod)
	}
	return found, nil
}

// measure returns the duration of one lookup, without and with the index.
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
