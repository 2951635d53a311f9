package controller

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// Without a jobCount there is one DaemonSet, which needs no list of nodes.
func TestOneWorkerOnEachNode(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b", "c")
	f.create()
	f.expectRunning(v1alpha1.ReasonWorking)
	f.expectCounts(3, 0, 0, 0)
	f.Expect(f.places()).To(Equal([]string{"a/0", "b/0", "c/0"}))
	f.Expect(f.daemonSets()).To(HaveLen(1))
	f.Expect(f.daemonSets()["job-0"].Spec.Template.Spec.Affinity).To(BeNil())
	start := f.goop().Status.StartTime
	f.Expect(start.UTC()).To(Equal(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))

	f.runs("a/0", "b/0")
	f.expectCounts(3, 2, 0, 0)
	f.ends(0, "hello from a", "a/0")
	f.expectCounts(3, 1, 1, 0)
	f.ends(0, "hello from b", "b/0", "c/0")
	f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	f.expectNotRunning(v1alpha1.ReasonFinished)
	f.expectCounts(3, 0, 3, 0)
	status := f.goop().Status
	f.Expect(*status.ExitCode).To(BeZero())
	f.Expect(status.Failures).To(BeEmpty())
	f.Expect(status.CompletionTime.Time).To(BeTemporally(">", start.Time))
	f.Expect(status.StartTime).To(Equal(start))
	f.Expect(f.recorded()).To(Equal([]string{
		"Normal Working workers are running, or are about to start", "Normal Succeeded every worker exited with 0",
	}))
	f.Expect(f.places()).To(HaveLen(3), "the logs stay")
	f.join("d")
	f.settle()
	f.Expect(f.places()).To(HaveLen(3), "a node that joins after the end has no work")
	f.expectSteadyState()
	f.Expect(f.pods).To(Equal(map[string]int{"a/0": 1, "b/0": 1, "c/0": 1}))
}

// With a jobCount work is spread over the nodes as evenly as possible, with one DaemonSet for each round.
func TestJobCount(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		count  int32
		places []string
	}{
		"less than nodes":  {2, []string{"a/0", "b/0"}},
		"as many":          {3, []string{"a/0", "b/0", "c/0"}},
		"more":             {7, []string{"a/0", "a/1", "a/2", "b/0", "b/1", "c/0", "c/1"}},
		"one on all twice": {6, []string{"a/0", "a/1", "b/0", "b/1", "c/0", "c/1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a", "b", "c")
			f.create(workers(test.count))
			f.Expect(f.places()).To(Equal(test.places))
			f.expectCounts(test.count, 0, 0, 0)
			f.expectSteadyState()
			f.runs(test.places...)
			f.expectCounts(test.count, test.count, 0, 0)
			f.ends(0, "", test.places...)
			f.expect(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
			f.expectCounts(test.count, 0, test.count, 0)
			f.Expect(f.places()).To(Equal(test.places))
			f.expectSteadyState()
			for place, times := range f.pods {
				f.Expect(times).To(Equal(1), place)
			}
		})
	}
}

// With Continue the other workers finish. The status lists the first failures with their output.
func TestWorkersThatFail(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b", "c")
	f.create()
	f.ends(3, "disk is full", "b/0")
	f.expectRunning(v1alpha1.ReasonWorking)
	f.expectCounts(3, 0, 0, 1)
	f.Expect(f.goop().Status.Failures).To(Equal([]v1alpha1.Failure{{Node: f.node("b"), ExitCode: 3, Output: "disk is full"}}))
	f.ends(0, "", "a/0")
	f.ends(127, "not found", "c/0")
	failed := f.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonWorkersFailed)
	f.Expect(failed.Message).To(Equal("the first failed worker is that of round 0 on node " + f.node("b") + ": exit code 3"))
	f.expectCounts(3, 0, 1, 2)
	f.Expect(*f.goop().Status.ExitCode).To(Equal(int32(127)), "the highest")
	f.Expect(f.places()).To(HaveLen(3), "the logs stay")
	f.expectSteadyState()
}

// FailFast ends the other workers, and keeps the log of the failed one.
func TestFailFast(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(failFast, workers(4))
	f.runs("a/0", "a/1", "b/0", "b/1")
	f.ends(3, "no", "b/0")
	f.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonWorkersFailed)
	f.Expect(f.places()).To(Equal([]string{"b/0"}))
	f.expectCounts(4, 0, 0, 1)
	f.expectSteadyState()
	f.Expect(f.pods).To(HaveLen(4), "no work began after it")
}

// A worker that ends with 0 without a valid record does not count as succeeded.
func TestWorkerWithoutARecord(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create()
	f.kubelet("a/0", hasFinished(0, ""))
	pod := f.pod("a/0")
	pod.Status.InitContainerStatuses[1].State.Terminated.Message = "hello"
	f.Expect(f.client.Status().Update(f.ctx, pod)).To(Succeed())
	f.settle()
	f.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonWorkersFailed)
	f.Expect(f.goop().Status.Failures[0].ExitCode).To(Equal(int32(exitCodeUnknown)))
	f.Expect(f.goop().Status.Failures[0].Output).To(ContainSubstring("is not a worker's record"))
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]func(*v1alpha1.GoopSpec){"with a jobCount": workers(2), "everywhere": func(*v1alpha1.GoopSpec) {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGoopTestEnv(t, "a", "b")
			f.create(work, deadline(60))
			f.runs("a/0", "b/0")
			f.ends(0, "", "a/0")
			result, err := f.reconcile()
			f.Expect(err).NotTo(HaveOccurred())
			f.Expect(result.RequeueAfter).To(And(BeNumerically(">", 50*time.Second), BeNumerically("<=", 60*time.Second)))
			f.clock.Step(result.RequeueAfter - 5*time.Second)
			f.settle()
			f.expectRunning(v1alpha1.ReasonWorking)
			f.clock.Step(5 * time.Second)
			f.settle()
			f.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonDeadlineExceeded)
			f.Expect(f.places()).To(Equal([]string{"a/0"}), "the log of the finished worker stays")
			f.expectCounts(2, 0, 1, 0)
			f.expectSteadyState()
		})
	}
}

// A worker has failed, and the deadline was exceeded, before the operator observed either. Results until then count. So
// the work ends with the failure, whenever the operator crashes meanwhile. A failure after the end changes nothing.
func TestFailFastAtTheDeadline(t *testing.T) {
	t.Parallel()
	for n := range 8 {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint("request ", n+1, after), func(t *testing.T) {
				t.Parallel()
				f := newGoopTestEnv(t, "a", "b")
				f.create(failFast, deadline(60), cleanup)
				f.runs("a/0", "b/0")
				f.kubelet("a/0", hasFinished(3, ""))
				f.clock.Step(time.Hour)
				f.reconciler.throttle.wrote(f.key(), writesRecord, f.clock.Now())
				f.requests.crash = crash{at: len(f.requests.seen) + n + 1, after: after}
				f.settle()
				f.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonWorkersFailed)
				f.expectCounts(2, 0, 0, 1)
				f.Expect(f.places()).To(Equal([]string{"a/0"}))
			})
		}
	}
	f := newGoopTestEnv(t, "a", "b")
	f.create(failFast, deadline(60))
	f.runs("a/0", "b/0")
	f.clock.Step(time.Hour)
	for !f.goop().Ended() {
		f.reconciles(1)
	}
	f.ends(3, "", "a/0")
	f.expect(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonDeadlineExceeded)
	f.expectCounts(2, 0, 0, 0)
}

// After the TTL the workers and the record are deleted. The Goop stays, and no work runs again.
func TestTTL(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(workers(3), ttl(60))
	f.ends(0, "", "a/0", "a/1", "b/0")
	status := f.goop().Status
	f.Expect(f.places()).To(HaveLen(3))
	f.clock.SetTime(status.CompletionTime.Add(50 * time.Second))
	f.settle()
	f.Expect(f.daemonSets()).To(HaveLen(2))
	f.clock.Step(10 * time.Second)
	f.settle()
	f.Expect(f.daemonSets()).To(BeEmpty())
	f.Expect(f.shards()).To(BeEmpty())
	f.Expect(f.places()).To(BeEmpty())
	f.Expect(f.goop().Status).To(Equal(status), "the counts stay")
	f.join("c")
	f.expectSteadyState()
	f.Expect(f.daemonSets()).To(BeEmpty())
}

// A TTL that is set after the end of the work counts from the end.
func TestTTLThatComesLater(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create()
	f.ends(0, "", "a/0")
	f.clock.Step(time.Hour)
	f.settle()
	f.Expect(f.daemonSets()).To(HaveLen(1))
	f.change(ttl(60))
	f.Expect(f.daemonSets()).To(BeEmpty())
}

// The end is a latch: even with a stale cache, ended work does not run again.
func TestEndIsReadPastTheCache(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(workers(1))
	before := f.goop()
	f.ends(0, "", "a/0")
	f.change(ttl(0))
	f.Expect(f.daemonSets()).To(BeEmpty())
	f.freezeCache(before)
	_, err := f.reconcile()
	f.Expect(isStale(err)).To(BeTrue(), "%v", err)
	f.Expect(f.daemonSets()).To(BeEmpty())
	f.Expect(f.shards()).To(BeEmpty())
}
