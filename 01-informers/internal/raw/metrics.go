package raw

import (
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"example.com/workbook/01-informers/internal/foo"
)

// client-go has no metrics by itself: it calls providers, and those of Kubernetes are in k8s.io/component-base
// (metrics/prometheus). These have the same names and meanings.
//
// The providers are global variables, which keep the first value that is set: workqueue.SetProvider,
// leaderelection.SetProvider, metrics.Register for requests. Tests also link controller-runtime, which sets all three in its
// init functions (pkg/metrics and pkg/internal/metrics). So the queue gets its provider as an option, and leader election and
// requests are measured where they happen. The provider of informers is not set by anyone else.
var (
	registry = prometheus.NewRegistry()
	metric   = promauto.With(registry)

	queueDepth   = metric.NewGaugeVec(prometheus.GaugeOpts{Name: "workqueue_depth", Help: "Keys that wait in the queue."}, queueLabels)
	queueAdds    = metric.NewCounterVec(prometheus.CounterOpts{Name: "workqueue_adds_total", Help: "Keys added to the queue, but for those that were in it."}, queueLabels)
	queueRetries = metric.NewCounterVec(prometheus.CounterOpts{Name: "workqueue_retries_total", Help: "Keys added to be processed later."}, queueLabels)
	queueWait    = metric.NewHistogramVec(prometheus.HistogramOpts{Name: "workqueue_queue_duration_seconds", Help: "How long a key waited in the queue.", Buckets: queueBuckets}, queueLabels)
	queueWork    = metric.NewHistogramVec(prometheus.HistogramOpts{Name: "workqueue_work_duration_seconds", Help: "How long a reconciliation took.", Buckets: queueBuckets}, queueLabels)
	queueOpen    = metric.NewGaugeVec(prometheus.GaugeOpts{Name: "workqueue_unfinished_work_seconds", Help: "How long the reconciliations under way have taken, in sum."}, queueLabels)
	queueLongest = metric.NewGaugeVec(prometheus.GaugeOpts{Name: "workqueue_longest_running_processor_seconds", Help: "How long the longest reconciliation under way has taken."}, queueLabels)
	queueLabels  = []string{"name"}
	queueBuckets = prometheus.ExponentialBuckets(10e-9, 10, 10)

	informerQueued  = metric.NewGaugeVec(prometheus.GaugeOpts{Name: "informer_queued_items", Help: "Deltas that wait between reflector and cache."}, informerLabels)
	informerLatency = metric.NewHistogramVec(prometheus.HistogramOpts{Name: "informer_processing_latency_seconds", Help: "How long a delta took until it was in the cache and with the handlers."}, informerLabels)
	informerVersion = metric.NewGaugeVec(prometheus.GaugeOpts{Name: "informer_store_resource_version", Help: "The last 15 digits of the resourceVersion that the cache has seen."}, informerLabels)
	informerLabels  = []string{"name", "group", "version", "resource"}

	requests        = metric.NewCounterVec(prometheus.CounterOpts{Name: "rest_client_requests_total", Help: "Requests to the API server."}, []string{"code", "method", "host"})
	requestDuration = metric.NewHistogramVec(prometheus.HistogramOpts{Name: "rest_client_request_duration_seconds", Help: "How long until the headers of the response were received.", Buckets: []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60}}, []string{"verb", "host"})

	isLeader = metric.NewGaugeVec(prometheus.GaugeOpts{Name: "leader_election_master_status", Help: "1 while this replica holds the lease."}, []string{"name"}).WithLabelValues(foo.LeaseName)
)

func init() {
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// queueMetrics is a workqueue.MetricsProvider.
type queueMetrics struct{}

func (queueMetrics) NewDepthMetric(name string) workqueue.GaugeMetric {
	return queueDepth.WithLabelValues(name)
}

func (queueMetrics) NewAddsMetric(name string) workqueue.CounterMetric {
	return queueAdds.WithLabelValues(name)
}

func (queueMetrics) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return queueWait.WithLabelValues(name)
}

func (queueMetrics) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return queueWork.WithLabelValues(name)
}

func (queueMetrics) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return queueOpen.WithLabelValues(name)
}

func (queueMetrics) NewLongestRunningProcessorSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return queueLongest.WithLabelValues(name)
}

func (queueMetrics) NewRetriesMetric(name string) workqueue.CounterMetric {
	return queueRetries.WithLabelValues(name)
}

// informerMetrics is a cache.InformerMetricsProvider. It is called only for informers that have a name, from WithInformerName
// of their factory.
type informerMetrics struct{}

func (informerMetrics) NewQueuedItemMetric(id cache.InformerNameAndResource) cache.GaugeMetric {
	return whileNamed{id, informerQueued.WithLabelValues(labelsOf(id)...).Set}
}

func (informerMetrics) NewProcessingLatencyMetric(id cache.InformerNameAndResource) cache.HistogramMetric {
	return whileNamed{id, informerLatency.WithLabelValues(labelsOf(id)...).Observe}
}

func (informerMetrics) NewStoreResourceVersionMetric(id cache.InformerNameAndResource) cache.GaugeMetric {
	return whileNamed{id, informerVersion.WithLabelValues(labelsOf(id)...).Set}
}

func labelsOf(id cache.InformerNameAndResource) []string {
	resource := id.GroupVersionResource()
	return []string{id.Name(), resource.Group, resource.Version, resource.Resource}
}

// whileNamed is a metric of an informer. It does not change after the informer has released its name.
type whileNamed struct {
	id     cache.InformerNameAndResource
	record func(float64)
}

func (m whileNamed) Set(value float64) { m.Observe(value) }
func (m whileNamed) Observe(value float64) {
	if m.id.Reserved() {
		m.record(value)
	}
}

// instrumented measures the requests that it sends.
type instrumented struct{ http.RoundTripper }

// RoundTrip is part of http.RoundTripper.
func (i instrumented) RoundTrip(request *http.Request) (*http.Response, error) {
	timer := prometheus.NewTimer(requestDuration.WithLabelValues(request.Method, request.URL.Host))
	defer timer.ObserveDuration()
	response, err := i.RoundTripper.RoundTrip(request)
	code := "<error>"
	if err == nil {
		code = strconv.Itoa(response.StatusCode)
	}
	requests.WithLabelValues(code, request.Method, request.URL.Host).Inc()
	return response, err
}

// WrappedRoundTripper lets client-go find the transport below, for instance to close its idle connections.
func (i instrumented) WrappedRoundTripper() http.RoundTripper { return i.RoundTripper }
