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

// client-go measures nothing by itself: it calls providers, and Kubernetes' own are in k8s.io/component-base
// (metrics/prometheus). These have the same names and meanings.
//
// The providers are globals, of which the first that is set counts: workqueue.SetProvider,
// leaderelection.SetProvider, metrics.Register for requests. This operator also holds controller-runtime, which
// takes all three for itself when the program starts (init in its pkg/metrics and pkg/internal/metrics). So
// the queue is given its provider, and the others are measured where they happen; only that of informers is
// free.
var (
	registry = prometheus.NewRegistry()
	metric   = promauto.With(registry)

	queueDepth   = metric.NewGaugeVec(prometheus.GaugeOpts{Name: "workqueue_depth", Help: "Keys that wait in the queue."}, queueLabels)
	queueAdds    = metric.NewCounterVec(prometheus.CounterOpts{Name: "workqueue_adds_total", Help: "Keys added to the queue; what was in it already does not count."}, queueLabels)
	queueRetries = metric.NewCounterVec(prometheus.CounterOpts{Name: "workqueue_retries_total", Help: "Keys added to come back later."}, queueLabels)
	queueWait    = metric.NewHistogramVec(prometheus.HistogramOpts{Name: "workqueue_queue_duration_seconds", Help: "How long a key waited in the queue.", Buckets: queueBuckets}, queueLabels)
	queueWork    = metric.NewHistogramVec(prometheus.HistogramOpts{Name: "workqueue_work_duration_seconds", Help: "How long a pass took.", Buckets: queueBuckets}, queueLabels)
	queueOpen    = metric.NewGaugeVec(prometheus.GaugeOpts{Name: "workqueue_unfinished_work_seconds", Help: "How long the passes under way have taken, in sum."}, queueLabels)
	queueLongest = metric.NewGaugeVec(prometheus.GaugeOpts{Name: "workqueue_longest_running_processor_seconds", Help: "How long the longest pass under way has taken."}, queueLabels)
	queueLabels  = []string{"name"}
	queueBuckets = prometheus.ExponentialBuckets(10e-9, 10, 10)

	informerQueued  = metric.NewGaugeVec(prometheus.GaugeOpts{Name: "informer_queued_items", Help: "Deltas that wait between reflector and cache."}, informerLabels)
	informerLatency = metric.NewHistogramVec(prometheus.HistogramOpts{Name: "informer_processing_latency_seconds", Help: "How long a delta took into the cache and out to the handlers."}, informerLabels)
	informerVersion = metric.NewGaugeVec(prometheus.GaugeOpts{Name: "informer_store_resource_version", Help: "The last 15 digits of the resourceVersion that the cache has seen."}, informerLabels)
	informerLabels  = []string{"name", "group", "version", "resource"}

	requests        = metric.NewCounterVec(prometheus.CounterOpts{Name: "rest_client_requests_total", Help: "Requests to the API server."}, []string{"code", "method", "host"})
	requestDuration = metric.NewHistogramVec(prometheus.HistogramOpts{Name: "rest_client_request_duration_seconds", Help: "How long until the head of the answer was there.", Buckets: []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60}}, []string{"verb", "host"})

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

// informerMetrics is a cache.InformerMetricsProvider. It is asked only about informers that have a name, which
// a factory gives them with WithInformerName.
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

// whileNamed is a metric of an informer. One that has ended, and given up its name, changes nothing any more.
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

// measured counts the requests that pass through, and takes their time.
type measured struct{ http.RoundTripper }

// RoundTrip is part of http.RoundTripper.
func (m measured) RoundTrip(request *http.Request) (*http.Response, error) {
	timer := prometheus.NewTimer(requestDuration.WithLabelValues(request.Method, request.URL.Host))
	defer timer.ObserveDuration()
	answer, err := m.RoundTripper.RoundTrip(request)
	code := "<error>"
	if err == nil {
		code = strconv.Itoa(answer.StatusCode)
	}
	requests.WithLabelValues(code, request.Method, request.URL.Host).Inc()
	return answer, err
}

// WrappedRoundTripper lets client-go find the transport below, for one to close its idle connections.
func (m measured) WrappedRoundTripper() http.RoundTripper { return m.RoundTripper }
