package main

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/client-go/tools/cache"
)

// figures takes the metrics of all named informers of this process. An operator would give them to
// Prometheus; controller-runtime v0.25.2 sets no provider.
var figures = &provider{values: map[string]map[string]bool{}}

// provider implements cache.InformerMetricsProvider. There are three metrics, and only informers with a name
// have them.
type provider struct {
	mu     sync.Mutex
	values map[string]map[string]bool
}

var _ cache.InformerMetricsProvider = &provider{}

// NewQueuedItemMetric is a gauge of the deltas that wait in the informer's queue.
func (p *provider) NewQueuedItemMetric(id cache.InformerNameAndResource) cache.GaugeMetric {
	return p.metric(id, "queued items")
}

// NewProcessingLatencyMetric is a histogram of the seconds from the queue into the cache and the handlers'
// queues. The handlers themselves are not in it: they run on their own.
func (p *provider) NewProcessingLatencyMetric(id cache.InformerNameAndResource) cache.HistogramMetric {
	return p.metric(id, "processing latency")
}

// NewStoreResourceVersionMetric is a gauge of the resourceVersion that the cache has reached.
func (p *provider) NewStoreResourceVersionMetric(id cache.InformerNameAndResource) cache.GaugeMetric {
	return p.metric(id, "store resource version")
}

func (p *provider) metric(id cache.InformerNameAndResource, what string) metric {
	return metric{p, id, fmt.Sprintf("%s of %s", what, id.GroupVersionResource().Resource)}
}

// of lists the metrics that were written under an informer's name.
func (p *provider) of(name string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var written []string
	for what := range p.values[name] {
		written = append(written, what)
	}
	slices.Sort(written)
	return written
}

type metric struct {
	provider *provider
	id       cache.InformerNameAndResource
	what     string
}

// Set takes a gauge's value.
func (m metric) Set(float64) { m.write() }

// Observe takes a histogram's value.
func (m metric) Observe(float64) { m.write() }

// write drops what comes after the informer's end: its name may be another's by then.
func (m metric) write() {
	if !m.id.Reserved() {
		return
	}
	m.provider.mu.Lock()
	defer m.provider.mu.Unlock()
	if m.provider.values[m.id.Name()] == nil {
		m.provider.values[m.id.Name()] = map[string]bool{}
	}
	m.provider.values[m.id.Name()][m.what] = true
}
