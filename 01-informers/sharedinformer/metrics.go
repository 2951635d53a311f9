package main

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/client-go/tools/cache"
)

// metrics has the metrics of all named informers in this process. An operator would export them to
// Prometheus; controller-runtime v0.25.2 sets no provider.
var metrics = &provider{values: map[string]map[string]bool{}}

// provider implements cache.InformerMetricsProvider. There are three metrics, and only named informers have
// them.
type provider struct {
	mu     sync.Mutex
	values map[string]map[string]bool
}

var _ cache.InformerMetricsProvider = &provider{}

// NewQueuedItemMetric is a gauge: the number of deltas in the informer's queue.
func (p *provider) NewQueuedItemMetric(id cache.InformerNameAndResource) cache.GaugeMetric {
	return p.metric(id, "queued items")
}

// NewProcessingLatencyMetric is a histogram: the seconds from the queue to the cache and to the buffers of the
// handlers. It does not include the handlers.
func (p *provider) NewProcessingLatencyMetric(id cache.InformerNameAndResource) cache.HistogramMetric {
	return p.metric(id, "processing latency")
}

// NewStoreResourceVersionMetric is a gauge: the resourceVersion of the cache.
func (p *provider) NewStoreResourceVersionMetric(id cache.InformerNameAndResource) cache.GaugeMetric {
	return p.metric(id, "store resource version")
}

func (p *provider) metric(id cache.InformerNameAndResource, what string) metric {
	return metric{p, id, fmt.Sprintf("%s of %s", what, id.GroupVersionResource().Resource)}
}

// of returns the metrics that an informer has written.
func (p *provider) of(informer string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.values[informer]))
}

type metric struct {
	provider *provider
	id       cache.InformerNameAndResource
	what     string
}

// Set implements cache.GaugeMetric.
func (m metric) Set(float64) { m.write() }

// Observe implements cache.HistogramMetric.
func (m metric) Observe(float64) { m.write() }

// write drops values after the informer has released its name, because another informer can have it then.
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
