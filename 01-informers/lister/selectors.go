package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	listerscorev1 "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
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
func newFleet(indexers ...cache.Indexers) (*countingIndexer, error) {
	indexer := &countingIndexer{Indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})}
	for _, added := range indexers {
		if err := indexer.AddIndexers(added); err != nil {
			return nil, fmt.Errorf("adding an index: %w", err)
		}
	}
	for i := range fleetSize {
		app := fmt.Sprintf("app-%d", i%apps)
		if i%apps == 0 {
			app = "web"
		}
		err := indexer.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("ns-%d", i%namespaces), Name: fmt.Sprintf("pod-%d", i), Labels: map[string]string{"app": app},
		}})
		if err != nil {
			return nil, fmt.Errorf("filling the store: %w", err)
		}
	}
	return indexer, nil
}

// cost is what one query did in the store.
type cost struct {
	query                       string
	found, compared             int
	scans, byNamespace, byLabel int
}

func (c cost) String() string {
	return fmt.Sprintf("%-52s found %-4d labels compared %-6d scans %d, namespace index %d, label index %d",
		c.query, c.found, c.compared, c.scans, c.byNamespace, c.byLabel)
}

// measure runs a query on a store with these indexes.
func measure(query string, call func(cache.Indexer, labels.Selector) (int, error), indexers ...cache.Indexers) (cost, error) {
	indexer, err := newFleet(indexers...)
	if err != nil {
		return cost{}, err
	}
	selector := &countingSelector{Selector: labels.SelectorFromSet(labels.Set{"app": "web"})}
	found, err := call(indexer, selector)
	if err != nil {
		return cost{}, fmt.Errorf("running %s: %w", query, err)
	}
	return cost{
		query: query, found: found, compared: selector.compared,
		scans: indexer.scans, byNamespace: indexer.namespaceIndex, byLabel: indexer.otherIndexes,
	}, nil
}

func listAll(indexer cache.Indexer, selector labels.Selector) (int, error) {
	pods, err := listerscorev1.NewPodLister(indexer).List(selector)
	return len(pods), err
}

func listNamespace(indexer cache.Indexer, selector labels.Selector) (int, error) {
	pods, err := listerscorev1.NewPodLister(indexer).Pods("ns-0").List(selector)
	return len(pods), err
}

func lookUp(indexer cache.Indexer, _ labels.Selector) (int, error) {
	pods, err := indexer.ByIndex(byApp, "web")
	return len(pods), err
}

// selectorCosts runs the same query in five ways.
func selectorCosts() ([]cost, error) {
	var costs []cost
	for _, way := range []struct {
		query    string
		call     func(cache.Indexer, labels.Selector) (int, error)
		indexers []cache.Indexers
	}{
		{"List(app=web), without an index for app", listAll, []cache.Indexers{byNamespace}},
		{"List(app=web), with one", listAll, []cache.Indexers{byNamespace, byLabel}},
		{`Pods("ns-0").List(app=web), without an index for app`, listNamespace, []cache.Indexers{byNamespace}},
		{`Pods("ns-0").List(app=web), with one`, listNamespace, []cache.Indexers{byNamespace, byLabel}},
		{"indexer.ByIndex(by-app, web)", lookUp, []cache.Indexers{byNamespace, byLabel}},
	} {
		cost, err := measure(way.query, way.call, way.indexers...)
		if err != nil {
			return nil, err
		}
		costs = append(costs, cost)
	}
	return costs, nil
}
