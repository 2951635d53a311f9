package main

import (
	"os"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/metrics" // for the names of the metrics, which are those of Kubernetes
)

// measured returns a queue with a back-off of one second.
func measured(name string, provider workqueue.MetricsProvider) workqueue.TypedRateLimitingInterface[string] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Second),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: name, MetricsProvider: provider})
}

// of returns a metric as it is now.
func (m *meter) of(name string) metric {
	m.lock.Lock()
	defer m.lock.Unlock()
	return *m.metrics[name]
}

func TestTheNamesOfTheMetrics(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	prefix := metrics.WorkQueueSubsystem + "_"
	g.Expect([]string{depth, adds, latency, workDuration, unfinishedWork, longestRunning, retries}).To(Equal([]string{
		prefix + metrics.DepthKey, prefix + metrics.AddsKey, prefix + metrics.QueueLatencyKey, prefix + metrics.WorkDurationKey,
		prefix + metrics.UnfinishedWorkKey, prefix + metrics.LongestRunningProcessorKey, prefix + metrics.RetriesKey,
	}))
}

func TestDepthAndAddsDoNotCountCoalescedAdds(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	meter := newMeter()
	queue := measured("foo", meter)
	defer queue.ShutDown()
	for range 100 {
		queue.Add("a")
	}
	g.Expect(meter.of(adds).value).To(BeEquivalentTo(1))
	g.Expect(meter.of(depth).value).To(BeEquivalentTo(1))

	item := take(g, queue)
	g.Expect(meter.of(depth).value).To(BeZero(), "a key being processed does not wait")
	for range 100 {
		queue.Add(item)
	}
	g.Expect(meter.of(adds).value).To(BeEquivalentTo(2))
	g.Expect(meter.of(depth).value).To(BeEquivalentTo(1), "a dirty key is counted, although Len is 0")
	g.Expect(queue.Len()).To(BeZero())
	queue.Done(item)
	take(g, queue)
	g.Expect(meter.of(depth).value).To(BeZero())
}

func TestDurationsOfWaitingAndProcessing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		meter := newMeter()
		queue := measured("foo", meter)
		defer queue.ShutDown()
		queue.Add("a")
		time.Sleep(3 * time.Second)
		item := take(g, queue)
		time.Sleep(7 * time.Second)
		queue.Done(item)
		g.Expect(meter.of(latency).value).To(BeEquivalentTo(3))
		g.Expect(meter.of(latency).observations).To(Equal(1))
		g.Expect(meter.of(workDuration).value).To(BeEquivalentTo(7))
		g.Expect(meter.of(workDuration).observations).To(Equal(1))
	})
}

// The histograms do not have a reconciliation that never returns. These two gauges do.
func TestUnfinishedWorkShowsAHangingReconciliation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		meter := newMeter()
		queue := measured("foo", meter)
		defer queue.ShutDown()
		queue.Add("hangs")
		queue.Add("hangs too")
		take(g, queue)
		time.Sleep(10 * time.Second)
		take(g, queue)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		g.Expect(meter.of(unfinishedWork).value).To(BeEquivalentTo(30))
		g.Expect(meter.of(longestRunning).value).To(BeEquivalentTo(20))
		g.Expect(meter.of(workDuration).observations).To(BeZero())
	})
}

// A controller that reconciles every minute with AddAfter has a retry every minute, without a failure.
func TestRetriesCountEveryAddAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		meter := newMeter()
		queue := measured("foo", meter)
		defer queue.ShutDown()
		queue.AddRateLimited("failed")
		queue.AddAfter("looks again", time.Minute)
		queue.AddAfter("at once", 0)
		queue.Add("an event")
		g.Expect(meter.of(retries).value).To(BeEquivalentTo(3))
		g.Expect(meter.of(adds).value).To(BeEquivalentTo(2), "a delayed key is not in the queue")
		time.Sleep(time.Hour)
		synctest.Wait()
		g.Expect(meter.of(adds).value).To(BeEquivalentTo(4))
		g.Expect(meter.of(retries).value).To(BeEquivalentTo(3))
	})
}

// The provider of a process can be set once, before the first queue is made. So the test runs its own binary as another
// process, with this environment variable.
const providerEnv = "WORKQUEUE_TEST_PROVIDER"

func TestSetProviderIsForQueuesThatAreMadeLater(t *testing.T) {
	g := NewWithT(t)
	if os.Getenv(providerEnv) == "" {
		t.Parallel()
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSetProviderIsForQueuesThatAreMadeLater$", "-test.v")
		again.Env = append(os.Environ(), providerEnv+"=1")
		out, err := again.CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(out))
		g.Expect(string(out)).To(ContainSubstring("--- PASS: TestSetProvider"))
		return
	}
	early := measured("early", nil)
	defer early.ShutDown()
	first, second := newMeter(), newMeter()
	workqueue.SetProvider(first)
	workqueue.SetProvider(second)
	early.Add("a")
	g.Expect(first.lines()).To(BeEmpty(), "a queue keeps its provider")

	late := measured("late", nil)
	defer late.ShutDown()
	late.Add("a")
	g.Expect(first.of(adds).value).To(BeEquivalentTo(1))
	g.Expect(second.lines()).To(BeEmpty(), "the second call has no effect")
}
