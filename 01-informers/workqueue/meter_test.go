package main

import (
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/metrics" // for the names of the metrics, which are those of Kubernetes
)

func TestTheNamesOfTheMetrics(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	prefix := metrics.WorkQueueSubsystem + "_"
	g.Expect([]string{depth, adds, latency, workDuration, unfinishedWork, longestRunning, retries}).To(Equal([]string{
		prefix + metrics.DepthKey, prefix + metrics.AddsKey, prefix + metrics.QueueLatencyKey, prefix + metrics.WorkDurationKey,
		prefix + metrics.UnfinishedWorkKey, prefix + metrics.LongestRunningProcessorKey, prefix + metrics.RetriesKey,
	}))
}

// The histograms do not have a reconciliation that never returns. These two gauges do.
func TestUnfinishedWorkShowsAHangingReconciliation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		meter := meter{}
		queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: "foo", MetricsProvider: meter})
		defer queue.ShutDown()
		queue.Add("hangs")
		queue.Add("hangs too")
		queue.Get()
		time.Sleep(10 * time.Second)
		queue.Get()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		g.Expect(meter[unfinishedWork].value).To(BeEquivalentTo(30))
		g.Expect(meter[longestRunning].value).To(BeEquivalentTo(20))
		g.Expect(meter[workDuration].observations).To(BeZero())
	})
}
