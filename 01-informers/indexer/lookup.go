package main

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/lesson"
)

const (
	fleetSize = 10_000
	nodes     = 100
)

// newFleet returns a store with fleetSize Pods, evenly distributed.
func newFleet() cache.Indexer {
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
func lookUp(indexer cache.Indexer, node string) (found []*corev1.Pod) {
	for _, obj := range lesson.Must(indexer.ByIndex(byNode, node)) {
		found = append(found, obj.(*corev1.Pod))
	}
	return found
}

// measure returns the duration of one lookup, without and with the index.
func measure(indexer cache.Indexer, node string) (without, with time.Duration) {
	const scans, lookUps = 100, 10_000
	start := time.Now()
	for range scans {
		scan(indexer, node)
	}
	without = time.Since(start) / scans
	start = time.Now()
	for range lookUps {
		lookUp(indexer, node)
	}
	return without, time.Since(start) / lookUps
}
