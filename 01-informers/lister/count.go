package main

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/workbook/01-informers/internal/lesson"
)

// requests counts the requests of a client, which it uses for Pods only.
type requests struct{ lesson.Requests }

// counted returns a client whose requests are counted.
func counted(config *rest.Config) (*requests, kubernetes.Interface) {
	requests := &requests{}
	return requests, lesson.Must(kubernetes.NewForConfig(requests.Attach(config)))
}

// String returns the number of requests since the last Take, in total and by verb.
func (r *requests) String() string {
	all := r.All()
	lists := len(slices.DeleteFunc(slices.Clone(all), lesson.Request.Watch))
	switch watches := len(all) - lists; {
	case lists > 0 && watches > 0:
		return fmt.Sprintf("%d (list %d, watch %d)", len(all), lists, watches)
	case lists > 0:
		return fmt.Sprintf("%d (list %d)", len(all), lists)
	case watches > 0:
		return fmt.Sprintf("%d (watch %d)", len(all), watches)
	}
	return "0"
}

// countingIndexer counts the calls of an indexer by their kind. It is not safe for concurrent use.
type countingIndexer struct {
	cache.Indexer
	calls
}

type calls struct{ scans, byNamespace, byLabel int }

func (c *countingIndexer) List() []any {
	c.scans++
	return c.Indexer.List()
}

func (c *countingIndexer) Index(name string, obj any) ([]any, error) {
	c.countIndex(name)
	return c.Indexer.Index(name, obj)
}

func (c *countingIndexer) ByIndex(name, value string) ([]any, error) {
	c.countIndex(name)
	return c.Indexer.ByIndex(name, value)
}

func (c *countingIndexer) countIndex(name string) {
	if name == cache.NamespaceIndex {
		c.byNamespace++
	} else {
		c.byLabel++
	}
}

// countingSelector counts the objects whose labels it compares.
type countingSelector struct {
	labels.Selector
	compared int
}

func (c *countingSelector) Matches(set labels.Labels) bool {
	c.compared++
	return c.Selector.Matches(set)
}
