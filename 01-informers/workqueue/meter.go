package main

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// The names of the metrics in component-base (metrics/prometheus/workqueue). Each metric has the label name, with the
// name of the queue. controller-runtime has the same names, with more labels.
const (
	depth          = "workqueue_depth"
	adds           = "workqueue_adds_total"
	latency        = "workqueue_queue_duration_seconds"
	workDuration   = "workqueue_work_duration_seconds"
	unfinishedWork = "workqueue_unfinished_work_seconds"
	longestRunning = "workqueue_longest_running_processor_seconds"
	retries        = "workqueue_retries_total"
)

// meter is a MetricsProvider for one queue. Before a program makes its queues, it imports component-base for its side
// effect, or calls workqueue.SetProvider with a provider for its own registry.
type meter map[string]*metric

// metric is a counter, a gauge and a histogram. The value of a histogram is the sum.
type metric struct {
	lock         sync.Mutex
	value        float64
	observations int
}

func (m *metric) change(change func()) {
	m.lock.Lock()
	defer m.lock.Unlock()
	change()
}

func (m *metric) Inc()                  { m.change(func() { m.value++ }) }
func (m *metric) Dec()                  { m.change(func() { m.value-- }) }
func (m *metric) Set(value float64)     { m.change(func() { m.value = value }) }
func (m *metric) Observe(value float64) { m.change(func() { m.value += value; m.observations++ }) }

func (m meter) add(name string) *metric {
	m[name] = &metric{}
	return m[name]
}

// lines returns a line for each metric of the queue.
func (m meter) lines() (lines []string) {
	for _, known := range []struct{ name, means string }{
		{adds, "keys added, without those that were coalesced"},
		{depth, "keys that wait"},
		{retries, "calls of AddAfter and AddRateLimited"},
		{latency, "observations: one for each Get"},
		{workDuration, "observations: one for each Done"},
		{unfinishedWork, "seconds, of all keys being processed; set every 0.5 s"},
		{longestRunning, "seconds, of the longest processing; set every 0.5 s"},
	} {
		metric := m[known.name]
		if metric == nil {
			continue
		}
		value := "-"
		metric.change(func() {
			switch known.name {
			case latency, workDuration:
				value = strconv.Itoa(metric.observations)
			case adds, depth, retries:
				value = fmt.Sprintf("%.0f", metric.value)
			}
		})
		lines = append(lines, fmt.Sprintf("%-44s %s  %s", known.name, value, known.means))
	}
	return lines
}

// The methods of a workqueue.MetricsProvider. Their argument is the name of the queue, for the label.

func (m meter) NewDepthMetric(string) workqueue.GaugeMetric            { return m.add(depth) }
func (m meter) NewAddsMetric(string) workqueue.CounterMetric           { return m.add(adds) }
func (m meter) NewLatencyMetric(string) workqueue.HistogramMetric      { return m.add(latency) }
func (m meter) NewWorkDurationMetric(string) workqueue.HistogramMetric { return m.add(workDuration) }
func (m meter) NewRetriesMetric(string) workqueue.CounterMetric        { return m.add(retries) }
func (m meter) NewUnfinishedWorkSecondsMetric(string) workqueue.SettableGaugeMetric {
	return m.add(unfinishedWork)
}
func (m meter) NewLongestRunningProcessorSecondsMetric(string) workqueue.SettableGaugeMetric {
	return m.add(longestRunning)
}

func (s steps) metrics() {
	s.Printf("\n6. Metrics: two keys added, one again while it waited; one failed and was added after a delay, one is being processed\n")
	named, unnamed := meter{}, meter{}
	useQueue("foo", named)
	useQueue("", unnamed)
	for _, line := range named.lines() {
		s.Printf("   %s\n", line)
	}
	s.Printf("   a queue without a name: %d metrics\n", len(unnamed.lines()))
}

// useQueue changes every metric of a queue.
func useQueue(name string, meter meter) {
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Millisecond, time.Millisecond),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: name, MetricsProvider: meter})
	defer queue.ShutDown()
	queue.Add("a")
	queue.Add("b")
	queue.Add("b")
	a, _ := queue.Get()
	_, _ = queue.Get() // without Done
	queue.AddRateLimited(a)
	queue.Done(a)
	for queue.Len() == 0 {
		time.Sleep(time.Millisecond)
	}
}
