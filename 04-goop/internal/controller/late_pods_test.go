package controller

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// withoutPods replaces the reconciler by one whose cache has no pods yet.
func (f *goopTestEnv) withoutPods() {
	f.use()
	f.reconciler.Client = interceptor.NewClient(f.watching(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*corev1.PodList); ok {
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	})
}

// attempts calls Reconcile n times. Some calls may find that the cache is stale.
func (f *goopTestEnv) attempts(n int) {
	for range n {
		_, err := f.reconcile()
		f.Expect(err == nil || isStale(err)).To(BeTrue(), "%v", err)
	}
}

// endsWork calls Reconcile until the DaemonSets of the work are deleted. Their controller observes each change, and their
// pods stay.
func (f *goopTestEnv) endsWork() {
	left := func() []*appsv1.DaemonSet {
		return slices.DeleteFunc(slices.Collect(maps.Values(f.daemonSets())), func(daemonSet *appsv1.DaemonSet) bool { return !isOurs(daemonSet) })
	}
	for tries := 0; tries < 20 && len(left()) > 0; tries++ {
		f.attempts(1)
		f.observeDaemonSets(f.daemonSets())
	}
	f.Expect(left()).To(BeEmpty())
}

// begin creates the Goop and its DaemonSets, before the DaemonSet controller has created pods.
func (f *goopTestEnv) begin(change ...func(*v1alpha1.GoopSpec)) {
	goop := &v1alpha1.Goop{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: f.namespace}, Spec: f.spec(change...)}
	f.Expect(f.client.Create(f.ctx, goop)).To(Succeed())
	f.reconciles(6)
	f.Expect(f.podList()).To(BeEmpty())
}

// The DaemonSet controller creates a pod a moment before the operator deletes the DaemonSet. The cache does not have the
// pod yet, but its work begins. The Goop is not removed without a cleanup on its node.
func TestLatePodIsCleanedUpAfter(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "b")
	f.begin(cleanup)
	f.makePod(f.daemonSets()["job-0"], f.node("b"))
	f.withoutPods()
	f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
	f.clock.SetTime(time.Now())
	f.endsWork()
	f.Expect(f.gone()).To(BeFalse())
	f.kubelet("b/0", isRunning)
	f.use()
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"b/cleanup"}))
	f.ends(0, "", "b/cleanup")
	f.Expect(f.gone()).To(BeTrue())
}

// The DaemonSet controller has not observed the deletion, and creates a pod. Its DaemonSet is deleted only after it has
// observed that no pod is to exist, so the cleanup runs on that node too.
func TestWorkIsNotDeletedBeforeItsEndIsObserved(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "b")
	f.begin(cleanup)
	before := f.daemonSets()["job-0"]
	f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
	f.clock.SetTime(time.Now())
	f.reconciles(8)
	f.Expect(f.daemonSets()).To(HaveKey("job-0"))
	f.makePod(before, f.node("b"))
	f.kubelet("b/0", isRunning)
	f.reconciles(1)
	f.Expect(f.record().Begun).To(HaveKey(f.node("b")))
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"b/cleanup"}))
}

// The cleanup on a node also waits for a pod of the work that the cache does not have yet.
func TestCleanupWaitsForALatePod(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a")
	f.create(cleanup, workers(2))
	f.runs("a/0")
	f.Expect(f.record().Begun).To(HaveKey(f.node("a")))
	f.removePod(f.pod("a/0"))
	f.kubelet("a/1", isRunning)
	f.withoutPods()
	f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
	f.clock.SetTime(time.Now())
	f.endsWork()
	f.use()
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"a/cleanup"}))
}

// A pod that the scheduler has not assigned to its node yet may be assigned, and begin, at any moment.
func TestUnscheduledPodIsWaitedFor(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "b")
	f.begin(cleanup)
	pod := podOf(f.daemonSets()["job-0"], "")
	f.Expect(f.client.Create(f.ctx, pod)).To(Succeed())
	f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
	f.clock.SetTime(time.Now())
	f.endsWork()
	f.Expect(f.gone()).To(BeFalse())
	f.Expect(f.client.SubResource("binding").Create(f.ctx, pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: f.node("b")}})).To(Succeed())
	f.kubelet("b/0", isRunning)
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"b/cleanup"}))
}

// cleanupNodes returns the nodes of the cleanup's DaemonSet.
func (f *goopTestEnv) cleanupNodes() []string {
	round := roundOf(0, f.daemonSets()["job-cleanup"])
	return round.Nodes
}

// An unreachable node still has a pod of the work. When the node responds again, that pod ends before the cleanup begins
// there.
func TestCleanupOfANodeThatRespondsAgainWaitsForItsWork(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(cleanup)
	f.runs("a/0", "b/0")
	f.taint("a", corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute})
	f.Expect(f.client.Delete(f.ctx, f.goop())).To(Succeed())
	f.clock.SetTime(time.Now())
	f.endsWork()
	f.removePod(f.pod("b/0"))
	f.reconciles(3)
	f.Expect(f.cleanupNodes()).To(Equal([]string{f.node("b")}))
	f.taint("a")
	f.reconciles(3)
	f.Expect(f.cleanupNodes()).To(Equal([]string{f.node("b")}), "its work is ending")
	f.removePod(f.pod("a/0"))
	f.reconciles(3)
	f.Expect(f.cleanupNodes()).To(Equal([]string{f.node("a"), f.node("b")}))
}

// The DaemonSet of the cleanup is deleted while a node is unreachable, and the node returns with its old pod. No second
// pod starts beside it.
func TestCleanupOfANodeThatIsBackWaitsForItsOldPod(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(cleanup)
	f.runs("a/0", "b/0")
	f.delete()
	f.kubelet("a/cleanup", isRunning)
	f.Expect(f.client.Delete(f.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: f.node("a")}})).To(Succeed())
	f.Expect(f.client.Delete(f.ctx, f.daemonSets()["job-cleanup"])).To(Succeed())
	f.removePod(f.pod("b/cleanup"))
	f.reconciles(3)
	f.Expect(f.cleanupNodes()).To(Equal([]string{f.node("b")}))
	f.join("a")
	f.reconciles(3)
	f.Expect(f.cleanupNodes()).To(Equal([]string{f.node("b")}), "its old pod is ending")
	f.removePod(f.pod("a/cleanup"))
	f.reconciles(3)
	f.Expect(f.cleanupNodes()).To(Equal([]string{f.node("a"), f.node("b")}))
}
