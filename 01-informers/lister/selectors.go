package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	listerscorev1 "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/lesson"
)

const (
	fleetSize  = 10_000
	namespaces = 20
	apps       = 25
	byApp      = "by-app"
)

var byNamespace = cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}

// byLabel is an index that fits the selector. No lister uses it.
var byLabel = cache.Indexers{byApp: cache.TypedIndexerFuncToIndexerFunc(func(pod *corev1.Pod) ([]string, error) {
	return []string{pod.Labels["app"]}, nil
})}

// newFleet returns a store with fleetSize Pods and these indexes. Each app has the same number of Pods; app
// 0 is called web.
func newFleet(indexers ...cache.Indexers) *countingIndexer {
	indexer := &countingIndexer{Indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})}
	for _, added := range indexers {
		lesson.Check(indexer.AddIndexers(added))
	}
	for i := range fleetSize {
		app := fmt.Sprintf("app-%d", i%apps)
		if i%apps == 0 {
			app = "web"
		}
		lesson.Check(indexer.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("ns-%d", i%namespaces), Name: fmt.Sprintf("pod-%d", i), Labels: map[string]string{"app": app},
		}}))
	}
	return indexer
}

// cost is what one query did in the store.
type cost struct {
	query           string
	found, compared int
	calls
}

func (c cost) String() string {
	return fmt.Sprintf("%-52s found %-4d labels compared %-6d scans %d, namespace index %d, label index %d",
		c.query, c.found, c.compared, c.scans, c.byNamespace, c.byLabel)
}

// query looks for Pods, and returns how many it has found.
type query func(cache.Indexer, labels.Selector) int

// measure runs a query on a store with these indexes.
func measure(name string, run query, indexers ...cache.Indexers) cost {
	indexer := newFleet(indexers...)
	selector := &countingSelector{Selector: labels.SelectorFromSet(labels.Set{"app": "web"})}
	found := run(indexer, selector)
	return cost{name, found, selector.compared, indexer.calls}
}

func listAll(indexer cache.Indexer, selector labels.Selector) int {
	return len(lesson.Must(listerscorev1.NewPodLister(indexer).List(selector)))
}

func listNamespace(indexer cache.Indexer, selector labels.Selector) int {
	return len(lesson.Must(listerscorev1.NewPodLister(indexer).Pods("ns-0").List(selector)))
}

func lookUp(indexer cache.Indexer, _ labels.Selector) int {
	return len(lesson.Must(indexer.ByIndex(byApp, "web")))
}

// selectorCosts runs the same query in five ways.
func selectorCosts() []cost {
	return []cost{
		measure("List(app=web), without an index for app", listAll, byNamespace),
		measure("List(app=web), with one", listAll, byNamespace, byLabel),
		measure(`Pods("ns-0").List(app=web), without an index for app`, listNamespace, byNamespace),
		measure(`Pods("ns-0").List(app=web), with one`, listNamespace, byNamespace, byLabel),
		measure("indexer.ByIndex(by-app, web)", lookUp, byNamespace, byLabel),
	}
}
