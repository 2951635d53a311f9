package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/04-goop/internal/plan"
)

const watchTimeout = 60 * time.Second

// A thousand events of pods trigger one reconciliation. The event of a pod that is being deleted triggers it sooner.
func TestPodEventsAreGathered(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	clock := testclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	q := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](),
		workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Clock: clock})
	defer q.ShutDown()
	daemonSet := desiredRound(aGoop(), plan.Round{Everywhere: true}, testImages)
	for i := range 1000 {
		pod := podOf(daemonSet, fmt.Sprintf("node-%d", i))
		podHandler().Create(t.Context(), event.CreateEvent{Object: pod}, q)
		podHandler().Update(t.Context(), event.UpdateEvent{ObjectOld: pod, ObjectNew: pod}, q)
	}
	g.Expect(q.Len()).To(BeZero())
	// AddAfter passes keys through a channel, in order: when this key is due, the queue has received all earlier ones.
	last := reconcile.Request{NamespacedName: client.ObjectKey{Name: "last"}}
	q.AddAfter(last, 1)
	stepUntil(g, clock, 1, func() bool { return q.Len() > 0 })
	request, _ := q.Get()
	g.Expect(request).To(Equal(last))
	q.Done(request)
	g.Expect(q.Len()).To(BeZero())
	stepUntil(g, clock, gatherPause, func() bool { return q.Len() > 0 })
	g.Expect(q.Len()).To(Equal(1))
	request, _ = q.Get()
	g.Expect(request.NamespacedName).To(Equal(client.ObjectKey{Namespace: "hive", Name: "job"}))
	q.Done(request)

	terminating := podOf(daemonSet, "node-0")
	terminating.DeletionTimestamp = new(metav1.NewTime(clock.Now()))
	podHandler().Update(t.Context(), event.UpdateEvent{ObjectOld: terminating, ObjectNew: terminating}, q)
	stepUntil(g, clock, deletionPause, func() bool { return q.Len() > 0 })
	g.Expect(q.Len()).To(Equal(1))
}

// stepUntil steps the clock until a condition is met. A queue may begin to wait for the clock after any of the steps.
func stepUntil(g Gomega, clock *testclock.FakeClock, step time.Duration, met func() bool) {
	g.Eventually(func() bool {
		clock.Step(step)
		return met()
	}).Should(BeTrue())
}

// If an event handler reads and waits for the cache, it delays all later events, without end if the watch of Goops hangs.
func TestEventHandlersDoNotWaitForTheCache(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	var options client.ListOptions
	c := interceptor.NewClient(nil, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, _ client.ObjectList, given ...client.ListOption) error {
			options.ApplyOptions(given)
			return nil
		},
	})
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	(&GoopReconciler{Client: c}).nodeChanged(t.Context(), true, q)
	g.Expect(options.DisableReadYourWritesConsistency).To(BeTrue())
}

// A Goop may need the name of a deleted object, if its own name is a prefix of it.
func TestDeletionsEnqueueByName(t *testing.T) {
	t.Parallel()
	for name, goops := range map[string][]string{
		"job-0": {"job"}, "job-cleanup": {"job"}, "job-record-0": {"job-record", "job"}, "my-job-1": {"my-job", "my"}, "other": nil,
	} {
		g := NewWithT(t)
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		enqueueByName(t.Context(), event.DeleteEvent{Object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}}, q)
		var enqueued []string
		for q.Len() > 0 {
			request, _ := q.Get()
			enqueued = append(enqueued, request.Name)
		}
		g.Expect(enqueued).To(ConsistOf(goops), name)
		q.ShutDown()
	}
}

// The cache keeps everything that decisions need, and nothing else.
func TestTransformKeepsWhatDecisionsNeed(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	round := plan.Round{Number: 3, Nodes: []string{"a", "b"}}
	daemonSet := desiredRound(aGoop(), round, testImages)
	daemonSet.Generation, daemonSet.Status.ObservedGeneration = 2, 1
	reduced := reducedTo[*appsv1.DaemonSet](g, daemonSet)
	g.Expect(isObserved(reduced)).To(BeFalse())
	daemonSet.Status.ObservedGeneration = 2
	g.Expect(isObserved(reducedTo[*appsv1.DaemonSet](g, daemonSet))).To(BeTrue())
	g.Expect(roundOf(3, reduced)).To(Equal(round))
	g.Expect(indexGoop(reduced)).To(Equal([]string{"job"}))
	g.Expect(reduced.Spec.Template.Spec.InitContainers).To(BeEmpty())

	pod := podOf(daemonSet, "a")
	setWork(pod, hasFinished(0, strings.Repeat("x", 2000)))
	pod.Annotations = map[string]string{"big": "annotation"}
	small := reducedTo[*corev1.Pod](g, pod)
	summary := summarize([]corev1.Pod{*small}, map[types.UID]podOwner{controllerOf(pod): {round: 3}}, func(plan.Place) bool { return false })
	g.Expect(summary.ended).To(HaveKey(plan.Place{Node: "a", Round: 3}))
	text, err := json.Marshal(small)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(text)).To(BeNumerically("<", 1500), "without the output of succeeded workers")
	g.Expect(pod.Status.InitContainerStatuses[1].State.Terminated.Message).To(ContainSubstring("xxx"), "the object itself is not changed")

	setWork(pod, hasFinished(1, "the end"))
	g.Expect(reducedTo[*corev1.Pod](g, pod).Status.InitContainerStatuses[1].State.Terminated.Message).To(ContainSubstring("the end"))

	pod = podOf(daemonSet, "")
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "no room"}}
	g.Expect(unscheduled(reducedTo[*corev1.Pod](g, pod)).message).To(ContainSubstring("no room"))

	notOwned := reducedTo[*corev1.ConfigMap](g, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "job-record-0", UID: "9"}, Data: map[string]string{"secret": "x"}})
	g.Expect(notOwned.UID).To(BeEquivalentTo("9"))
	g.Expect(notOwned.Data).To(BeEmpty())

	node := reducedTo[*corev1.Node](g, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"l": "v"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "t"}}, PodCIDR: "10.0.0.0/24"},
		Status:     corev1.NodeStatus{Images: []corev1.ContainerImage{{SizeBytes: 1}}},
	})
	g.Expect(node.Labels).To(HaveKey("l"))
	g.Expect(node.Spec).To(Equal(corev1.NodeSpec{Taints: []corev1.Taint{{Key: "t"}}}))
	g.Expect(node.Status.Images).To(BeEmpty())
}

func reducedTo[T client.Object](g *WithT, object T) T {
	out, err := transform(object.DeepCopyObject())
	g.Expect(err).NotTo(HaveOccurred())
	return out.(T)
}

// The kubelet updates the status of its node at regular intervals, which is irrelevant to Goops.
func TestOnlyLabelsAndTaintsOfANodeMatter(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "1"}}
	later := node.DeepCopy()
	later.ResourceVersion = "2"
	g.Expect(sameNode(node, later)).To(BeTrue())
	later.Labels = map[string]string{"a": "b"}
	g.Expect(sameNode(node, later)).To(BeFalse())
	later = node.DeepCopy()
	later.Spec.Taints = []corev1.Taint{{Key: "t"}}
	g.Expect(sameNode(node, later)).To(BeFalse())
}
