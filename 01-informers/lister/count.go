package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
)

// requests counts what goes to the API server for pods.
type requests struct {
	gets, lists, watches, writes atomic.Int64
}

func (r *requests) String() string {
	total := r.lists.Load() + r.watches.Load() + r.gets.Load() + r.writes.Load()
	if total == 0 {
		return "0"
	}
	var kinds []string
	for _, kind := range []struct {
		name  string
		count int64
	}{{"list", r.lists.Load()}, {"watch", r.watches.Load()}, {"get", r.gets.Load()}, {"write", r.writes.Load()}} {
		if kind.count > 0 {
			kinds = append(kinds, fmt.Sprintf("%s %d", kind.name, kind.count))
		}
	}
	return fmt.Sprintf("%d (%s)", total, strings.Join(kinds, ", "))
}

func (r *requests) reset() {
	r.gets.Store(0)
	r.lists.Store(0)
	r.watches.Store(0)
	r.writes.Store(0)
}

// count is for rest.Config.Wrap.
func (r *requests) count(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(request *http.Request) (*http.Response, error) {
		_, pod, found := strings.Cut(request.URL.Path, "/pods")
		switch {
		case !found:
		case request.Method != http.MethodGet:
			r.writes.Add(1)
		case request.URL.Query().Get("watch") != "":
			r.watches.Add(1)
		case pod == "":
			r.lists.Add(1)
		default:
			r.gets.Add(1)
		}
		return next.RoundTrip(request)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// countingIndexer counts the ways in which an indexer is asked. It is for one goroutine.
type countingIndexer struct {
	cache.Indexer
	keys, scans, namespaceIndex, otherIndexes int
}

// GetByKey implements cache.Store.
func (c *countingIndexer) GetByKey(key string) (any, bool, error) {
	c.keys++
	return c.Indexer.GetByKey(key)
}

// List implements cache.Store.
func (c *countingIndexer) List() []any {
	c.scans++
	return c.Indexer.List()
}

// Index implements cache.Indexer.
func (c *countingIndexer) Index(name string, obj any) ([]any, error) {
	c.countIndex(name)
	return c.Indexer.Index(name, obj)
}

// ByIndex implements cache.Indexer.
func (c *countingIndexer) ByIndex(name, value string) ([]any, error) {
	c.countIndex(name)
	return c.Indexer.ByIndex(name, value)
}

func (c *countingIndexer) countIndex(name string) {
	if name == cache.NamespaceIndex {
		c.namespaceIndex++
	} else {
		c.otherIndexes++
	}
}

// countingSelector counts the objects whose labels are compared.
type countingSelector struct {
	labels.Selector
	compared int
}

// Matches implements labels.Selector.
func (c *countingSelector) Matches(set labels.Labels) bool {
	c.compared++
	return c.Selector.Matches(set)
}
