package raw

import (
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// metricOf returns one metric of the registry, by its name and labels; nil if there is none.
func metricOf(t *testing.T, name string, labels map[string]string) *dto.Metric {
	t.Helper()
	families, err := registry.Gather()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			matching := 0
			for _, label := range metric.GetLabel() {
				if labels[label.GetName()] == label.GetValue() {
					matching++
				}
			}
			if matching == len(labels) {
				return metric
			}
		}
	}
	return nil
}

// A queue without a name, or with a provider that was set too late, has no metrics, and no error.
func TestQueueIsMeasured(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	q := newQueue()
	defer q.ShutDown()
	q.Add(cache.NewObjectName("space", "one"))
	key, _ := q.Get()
	q.AddRateLimited(key)
	q.Done(key)
	labels := map[string]string{"name": queueName}
	for _, name := range []string{"workqueue_depth", "workqueue_unfinished_work_seconds", "workqueue_longest_running_processor_seconds"} {
		g.Expect(metricOf(t, name, labels).GetGauge()).NotTo(BeNil(), name)
	}
	for _, name := range []string{"workqueue_adds_total", "workqueue_retries_total"} {
		g.Expect(metricOf(t, name, labels).GetCounter().GetValue()).To(BeNumerically(">=", 1), name)
	}
	for _, name := range []string{"workqueue_queue_duration_seconds", "workqueue_work_duration_seconds"} {
		g.Expect(metricOf(t, name, labels).GetHistogram().GetSampleCount()).To(BeNumerically(">=", 1), name)
	}
}

func TestInformerIsMeasuredWhileItHasItsName(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	name, err := cache.NewInformerName("TestInformerIsMeasured")
	g.Expect(err).NotTo(HaveOccurred())
	id := name.WithResource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"})
	labels := map[string]string{"name": "TestInformerIsMeasured", "group": "apps", "version": "v1", "resource": "deployments"}
	observed := func() uint64 {
		return metricOf(t, "informer_processing_latency_seconds", labels).GetHistogram().GetSampleCount()
	}
	before := observed()
	queued := informerMetrics{}.NewQueuedItemMetric(id)
	latency := informerMetrics{}.NewProcessingLatencyMetric(id)
	version := informerMetrics{}.NewStoreResourceVersionMetric(id)
	queued.Set(3)
	latency.Observe(0.1)
	version.Set(100)
	name.Release()
	queued.Set(0)

	g.Expect(metricOf(t, "informer_queued_items", labels).GetGauge().GetValue()).To(Equal(3.0), "the name was released before")
	g.Expect(observed() - before).To(Equal(uint64(1)))
	g.Expect(metricOf(t, "informer_store_resource_version", labels).GetGauge().GetValue()).To(Equal(100.0))
}

func TestRequestsAreMeasured(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	client := &http.Client{Transport: instrumented{http.DefaultTransport}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	g.Expect(err).NotTo(HaveOccurred())
	response, err := client.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Body.Close()).To(Succeed())
	host := request.URL.Host
	counted := func(code string) float64 {
		return metricOf(t, "rest_client_requests_total", map[string]string{"code": code, "method": "GET", "host": host}).GetCounter().GetValue()
	}
	g.Expect(counted("404")).To(Equal(1.0))
	g.Expect(metricOf(t, "rest_client_request_duration_seconds", map[string]string{"verb": "GET", "host": host}).
		GetHistogram().GetSampleCount()).To(Equal(uint64(1)))

	server.Close()
	_, err = client.Do(request) //nolint:bodyclose // there is no response
	g.Expect(err).To(HaveOccurred())
	g.Expect(counted("<error>")).To(Equal(1.0))
}
