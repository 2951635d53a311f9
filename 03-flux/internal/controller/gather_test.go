package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/workqueue"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A thousand pods that become ready trigger one reconciliation. The end of a leader triggers one at once, and is
// recorded.
func TestPodEventsAreGathered(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	clock := testclock.NewFakeClock(zero)
	q := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](),
		workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Clock: clock})
	defer q.ShutDown()
	r := NewFluxSetupReconciler(nil, nil, clock)
	pods := r.podHandler()

	job := desiredJob(launchedSetup(fullFlux()))
	job.UID = "the-job"
	for rank := range 1000 {
		pod := podOfJob(job, rank)
		pods.Create(t.Context(), event.CreateEvent{Object: pod}, q)
		ready := pod.DeepCopy()
		makeReady(ready)
		pods.Update(t.Context(), event.UpdateEvent{ObjectOld: pod, ObjectNew: ready}, q)
	}
	g.Expect(q.Len()).To(BeZero())
	// The queue takes what is added later from a channel, in order. When this is due, it has taken all before it.
	last := reconcile.Request{NamespacedName: client.ObjectKey{Name: "last"}}
	q.AddAfter(last, 1)
	stepUntil(g, clock, 1, func() bool { return q.Len() > 0 })
	request, _ := q.Get()
	g.Expect(request).To(Equal(last))
	q.Done(request)
	g.Expect(q.Len()).To(BeZero())
	stepUntil(g, clock, podPause, func() bool { return q.Len() > 0 })
	g.Expect(q.Len()).To(Equal(1))
	request, _ = q.Get()
	g.Expect(request.NamespacedName).To(Equal(client.ObjectKey{Namespace: "hive", Name: "bees"}))
	q.Done(request)

	leader := podOfJob(job, 0)
	makeTerminated(leader, 3, "the end", zero)
	pods.Update(t.Context(), event.UpdateEvent{ObjectOld: podOfJob(job, 0), ObjectNew: leader}, q)
	g.Expect(q.Len()).To(Equal(1))
	g.Expect(r.terminations.of(request.NamespacedName, job.UID).leader.output).To(Equal("the end"))
	request, _ = q.Get()
	q.Done(request)

	pods.Delete(t.Context(), event.DeleteEvent{Object: leader}, q)
	g.Expect(q.Len()).To(BeZero(), "that is known")
}

// stepUntil steps the clock until a condition is met. A queue may begin to wait for the clock after any of the steps.
func stepUntil(g Gomega, clock *testclock.FakeClock, step time.Duration, met func() bool) {
	g.Eventually(func() bool {
		clock.Step(step)
		return met()
	}).Should(BeTrue())
}
