package e2e

import (
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/worker"
	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/e2e"
	"example.com/workbook/shared/expect"
)

// These specs end nodes, so they are Serial.

var (
	// secondHangs hangs in the second round on the node in the variable LOST.
	secondHangs = does(`test "$NODE_NAME" != "$LOST" || test "$GOOP_ROUND" = 0 || sleep 600`,
		func(pod *corev1.Pod) *worker.Record {
			if pod.Spec.NodeName == variable(pod, "LOST") && pod.Labels[v1alpha1.LabelRound] == "1" {
				return nil
			}
			return recordOf(pod, 0, "")
		})
	// counts reports how often it has run in its pod.
	counts = does(`echo run >>/goop/runs; echo "runs: $(wc -l </goop/runs)"`, endsWith(0, "runs: 1\n"))
	// waits ends when letEnd lets it: after a node has joined.
	waits = does(untilLet, whenLet(""))
)

var _ = Describe("A node", Serial, func() {
	It("whose container is restarted after its worker finished does not do the work again", Label(e2e.LabelContainers), func(ctx SpecContext) {
		w := newTestEnv(ctx)
		nodes := w.nodes()
		node := w.expendable()
		goop := w.create("rebooted", v1alpha1.GoopSpec{Cmd: counts})
		plain := plainDaemonSet(w, sh(`echo run >>/count/runs; echo "runs: $(wc -l </count/runs)"`))
		w.complete(goop, len(nodes))
		pod := w.podOn(goop, node)
		before := w.recorded(goop).Finished
		Expect(w.log(pod)).To(Equal("runs: 1\n"))
		other := w.plainPodOn(plain, node)
		Expect(w.log(other)).To(Equal("runs: 1\n"))

		restarted := time.Now()
		Expect(cluster.RestartNode(ctx, env.Cluster, node)).To(Succeed())
		w.startedAgain(pod, restarted)
		w.startedAgain(other, restarted)
		w.ready(node)
		Expect(w.log(pod)).To(And(ContainSubstring("does not run again"), Not(ContainSubstring("runs: 2"))))
		// For comparison, a DaemonSet without the operator.
		Expect(w.log(other)).To(ContainSubstring("runs: 2"))
		always(w, goop, func(g Gomega, live *v1alpha1.Goop) {
			condition(g, live.Status.Conditions, v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
			g.Expect(live.Status.Succeeded).To(BeEquivalentTo(len(nodes)))
		})
		Expect(w.recorded(goop).Finished).To(Equal(before))
	})

	It("that is deleted has its unfinished work done elsewhere, and only that; one that joins gets a worker", func(ctx SpecContext) {
		w := newTestEnv(ctx)
		lost := w.expendable()
		nodes := w.nodes()
		rest := slices.DeleteFunc(slices.Clone(nodes), func(node string) bool { return node == lost })
		workers := 2 * len(nodes)

		// 1. It is deleted with one finished and one running worker.
		pods := w.watch()
		leaving := w.create("leaving", v1alpha1.GoopSpec{
			Cmd: secondHangs, JobCount: new(int32(workers)), Env: []v1alpha1.EnvVar{{Name: "LOST", Value: lost}},
		})
		until(w, leaving, func(g Gomega, goop *v1alpha1.Goop) {
			g.Expect(goop.Status.Succeeded).To(BeEquivalentTo(workers - 1))
			g.Expect(goop.Status.Running).To(BeEquivalentTo(1))
		})
		DeferCleanup(func(ctx SpecContext) { (&testEnv{ctx: ctx}).join(lost) })
		w.leave(lost)
		w.complete(leaving, workers)
		spread := w.spread(leaving)
		Expect(spread).To(HaveKeyWithValue(lost, 1), "its finished work counts")
		delete(spread, lost)
		w.expectEven(spread, rest)
		for place, times := range pods.of(leaving, v1alpha1.RoleWork) {
			Expect(times).To(Equal(1), "%s ran %d times", place, times)
		}

		// 2. It joins while other workers run.
		joining := w.create("joining", v1alpha1.GoopSpec{Cmd: waits})
		w.running(joining, len(rest))
		Expect(joining.Status.Desired).To(BeEquivalentTo(len(rest)))
		w.join(lost)
		w.running(joining, len(nodes))
		w.letEnd(joining)
		w.complete(joining, len(nodes))
		Expect(w.spread(joining)).To(HaveLen(len(nodes)))
		w.expectOnce(pods, joining)
	})

	It("that is not ready keeps its worker", func(ctx SpecContext) {
		if env.Cluster.RunsContainers() {
			Skip("a node that is stopped has pods of other specs; on the embedded cluster it makes no difference to the operator")
		}
		w := newTestEnv(ctx)
		name := w.namespace
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{cluster.ManualNodeLabel: "true"}},
			Status:     nodeStatus(corev1.ConditionTrue),
		}
		Expect(env.Client.Create(ctx, node)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { (&testEnv{ctx: ctx}).leave(name) })
		w.ready(name)
		goop := w.create("waiting", v1alpha1.GoopSpec{Cmd: onlyOthers, Env: []v1alpha1.EnvVar{{Name: "SLOW", Value: name}}, JobCount: new(int32(len(w.nodes())))})
		until(w, w.podOn(goop, name), func(g Gomega, pod *corev1.Pod) {
			g.Expect(statusOf(pod)).NotTo(BeNil(), "work that no kubelet has accepted is placed elsewhere")
		})
		until(w, node, func(g Gomega, n *corev1.Node) {
			n.Status = nodeStatus(corev1.ConditionFalse)
			g.Expect(env.Client.Status().Update(ctx, n)).To(Succeed())
		})
		until(w, node, func(g Gomega, n *corev1.Node) {
			g.Expect(n.Spec.Taints).To(ContainElement(HaveField("Key", corev1.TaintNodeNotReady)))
		})
		until(w, goop, func(g Gomega, live *v1alpha1.Goop) {
			g.Expect(live.Status.Succeeded).To(Equal(live.Status.Desired - 1))
		})
		always(w, goop, func(g Gomega, live *v1alpha1.Goop) {
			condition(g, live.Status.Conditions, v1alpha1.ConditionRunning, metav1.ConditionTrue, v1alpha1.ReasonWorking)
			g.Expect(w.daemonSets(goop)).To(HaveLen(1), "no worker is placed again")
			g.Expect(w.pods(goop)).To(HaveLen(int(live.Status.Desired)))
		})
	})
})

// onlyOthers does not end on the node in the variable SLOW, and succeeds elsewhere.
var onlyOthers = does(`test "$NODE_NAME" != "$SLOW" || sleep 600`, func(pod *corev1.Pod) *worker.Record {
	if pod.Spec.NodeName == variable(pod, "SLOW") {
		return nil
	}
	return recordOf(pod, 0, "")
})

// nodeStatus is the status of a node as its kubelet would write it.
func nodeStatus(ready corev1.ConditionStatus) corev1.NodeStatus {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	return corev1.NodeStatus{
		Capacity: room, Allocatable: room,
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}},
	}
}

// expendable returns a node that can be missing for a while: not that of the control plane, nor that of the operator. On
// the embedded cluster it creates one.
func (w *testEnv) expendable() string {
	GinkgoHelper()
	if !env.Cluster.RunsContainers() {
		name := w.namespace
		w.join(name)
		DeferCleanup(func(ctx SpecContext) { (&testEnv{ctx: ctx}).leave(name) })
		return name
	}
	workers, err := env.Cluster.Nodes(w.ctx)
	Expect(err).NotTo(HaveOccurred())
	var name string
	// An earlier spec may have restarted the operator. Then it is on more than one node for a moment.
	Eventually(w.ctx, func(g Gomega) {
		var pods corev1.PodList
		g.Expect(env.Client.List(w.ctx, &pods, client.InNamespace(env.Operator.Namespace()))).To(Succeed())
		i := slices.IndexFunc(workers, func(node cluster.Node) bool {
			return !slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return pod.Spec.NodeName == node.Name })
		})
		g.Expect(i).NotTo(Equal(-1), "the operator is on every worker")
		name = workers[i].Name
	}).WithTimeout(patience).WithPolling(expect.Interval).Should(Succeed())
	return name
}

// leave deletes the Node, if it exists.
func (w *testEnv) leave(name string) {
	GinkgoHelper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(client.IgnoreNotFound(env.Client.Delete(w.ctx, node))).To(Succeed())
	w.gone(node)
}

// join creates a node, or lets a deleted one join again, and waits until it is ready.
func (w *testEnv) join(name string) {
	GinkgoHelper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"}}}
	switch err := env.Client.Get(w.ctx, client.ObjectKeyFromObject(node), node); {
	case err == nil:
	case env.Cluster.RunsContainers():
		Expect(cluster.RestartKubelet(w.ctx, env.Cluster, name)).To(Succeed())
	default:
		Expect(env.Client.Create(w.ctx, node)).To(Succeed())
	}
	w.ready(name)
}

// ready waits until a node is ready and schedulable.
func (w *testEnv) ready(name string) {
	GinkgoHelper()
	until(w, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(g Gomega, node *corev1.Node) {
		g.Expect(node.Status.Conditions).To(ContainElement(And(HaveField("Type", corev1.NodeReady), HaveField("Status", corev1.ConditionTrue))))
		g.Expect(node.Spec.Taints).NotTo(ContainElement(HaveField("Key", corev1.TaintNodeNotReady)))
	})
}

// cordon cordons a node, or uncordons it, and waits until the taint says that the control plane has observed it.
func (w *testEnv) cordon(name string, cordoned bool) {
	GinkgoHelper()
	until(w, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(g Gomega, node *corev1.Node) {
		if node.Spec.Unschedulable != cordoned {
			node.Spec.Unschedulable = cordoned
			g.Expect(env.Client.Update(w.ctx, node)).To(Succeed())
		}
		tainted := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
		g.Expect(tainted).To(Equal(cordoned))
	})
}

// startedAgain waits until the work container of a pod has started and terminated again after a moment.
func (w *testEnv) startedAgain(pod *corev1.Pod, since time.Time) {
	GinkgoHelper()
	until(w, pod, func(g Gomega, p *corev1.Pod) {
		work := statusOf(p)
		g.Expect(work).NotTo(BeNil())
		g.Expect(work.State.Terminated).NotTo(BeNil())
		g.Expect(work.State.Terminated.StartedAt.Time).To(BeTemporally(">", since))
	})
}

// plainPodOn waits until the work of a plain DaemonSet's pod on a node has ended, and returns the pod.
func (w *testEnv) plainPodOn(daemonSet *appsv1.DaemonSet, node string) *corev1.Pod {
	GinkgoHelper()
	var found *corev1.Pod
	Eventually(w.ctx, func(g Gomega) {
		var list corev1.PodList
		g.Expect(env.Client.List(w.ctx, &list, client.InNamespace(w.namespace), client.MatchingLabels(daemonSet.Spec.Selector.MatchLabels))).To(Succeed())
		i := slices.IndexFunc(list.Items, func(pod corev1.Pod) bool { return pod.Spec.NodeName == node })
		g.Expect(i).NotTo(Equal(-1))
		found = &list.Items[i]
		work := statusOf(found)
		g.Expect(work).NotTo(BeNil())
		g.Expect(work.State.Terminated).NotTo(BeNil())
	}).WithTimeout(patience).WithPolling(expect.Interval).Should(Succeed())
	return found
}
