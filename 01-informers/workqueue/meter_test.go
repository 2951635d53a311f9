package main

import (
	"os"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/metrics" // for its names of metrics, which are Kubernetes' own
)

// measured is a queue whose items fail with a back-off of one second.
func measured(name string, provider workqueue.MetricsProvider) workqueue.TypedRateLimitingInterface[string] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Second),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: name, MetricsProvider: provider})
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

func TestAQueueWithoutANameHasNoMetrics(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	named, unnamed := newMeter(), newMeter()
	measured("foo", named).ShutDown()
	measured("", unnamed).ShutDown()
	g.Expect(named.lines()).To(HaveLen(7))
	g.Expect(unnamed.lines()).To(BeEmpty())
}

func TestDepthAndAddsCountWhatWasNotCoalesced(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	meter := newMeter()
	queue := measured("foo", meter)
	defer queue.ShutDown()
	for range 100 {
		queue.Add("a")
	}
	g.Expect(meter.value(adds)).To(BeEquivalentTo(1))
	g.Expect(meter.value(depth)).To(BeEquivalentTo(1))

	item := take(g, queue)
	g.Expect(meter.value(depth)).To(BeZero(), "what is worked on does not wait")
	for range 100 {
		queue.Add(item)
	}
	g.Expect(meter.value(adds)).To(BeEquivalentTo(2))
	g.Expect(meter.value(depth)).To(BeEquivalentTo(1), "counted although Len is still 0: it waits for Done")
	g.Expect(queue.Len()).To(BeZero())
	queue.Done(item)
	take(g, queue)
	g.Expect(meter.value(depth)).To(BeZero())
}

func TestHowLongKeysWaitAndPassesTake(t *testing.T) {
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
		g.Expect(meter.value(latency)).To(BeEquivalentTo(3))
		g.Expect(meter.observations(latency)).To(Equal(1))
		g.Expect(meter.value(workDuration)).To(BeEquivalentTo(7))
		g.Expect(meter.observations(workDuration)).To(Equal(1))
	})
}

// A pass that never ends is in no histogram. These two show it.
func TestAPassThatHangsIsSeenInUnfinishedWork(t *testing.T) {
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
		g.Expect(meter.value(unfinishedWork)).To(BeEquivalentTo(30))
		g.Expect(meter.value(longestRunning)).To(BeEquivalentTo(20))
		g.Expect(meter.observations(workDuration)).To(BeZero())
	})
}

// Not only failures: a controller that looks again every minute by AddAfter retries every minute.
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
		g.Expect(meter.value(retries)).To(BeEquivalentTo(3))
		g.Expect(meter.value(adds)).To(BeEquivalentTo(2), "what waits for its time is not in the queue")
		time.Sleep(time.Hour)
		synctest.Wait()
		g.Expect(meter.value(adds)).To(BeEquivalentTo(4))
		g.Expect(meter.value(retries)).To(BeEquivalentTo(3))
	})
}

// The global provider is for a whole program, and it is set once: before the first queue is made. So the
// test is a program: it runs itself once more, with this in the environment.
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
	g.Expect(first.lines()).To(BeEmpty(), "a queue keeps the metrics that it was made with")

	late := measured("late", nil)
	defer late.ShutDown()
	late.Add("a")
	g.Expect(first.value(adds)).To(BeEquivalentTo(1))
	g.Expect(second.lines()).To(BeEmpty(), "only the first call counts")
}
