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

// These specs change nodes, and run alone.

var (
	// secondHangs hangs in the second round on the node that the variable LOST names.
	secondHangs = does(`test "$NODE_NAME" != "$LOST" || test "$GOOP_ROUND" = 0 || sleep 600`,
		func(pod *corev1.Pod, _ time.Duration) *worker.Record {
			if pod.Spec.NodeName == variable(pod, "LOST") && pod.Labels[v1alpha1.LabelRound] == "1" {
				return nil
			}
			return recordOf(pod, 0, "")
		})
	// counts tells how often it has run in its pod.
	counts = does(`echo run >>/goop/runs; echo "runs: $(wc -l </goop/runs)"`, endsWith(0, "runs: 1\n"))
	// waits takes longer than a node needs to join.
	waits = does("sleep 90", endsAfter(15*time.Second))
)

var _ = Describe("A node", func() {
	It("that is cordoned has its worker, as pods of DaemonSets tolerate it", func(ctx SpecContext) {
		w := alone(ctx)
		nodes := w.nodes()
		w.cordon(nodes[len(nodes)-1], true)
		DeferCleanup(func(ctx SpecContext) { (&world{Gomega: Default, ctx: ctx}).cordon(nodes[len(nodes)-1], false) })
		each := w.create("each", v1alpha1.GoopSpec{Cmd: greets})
		counted := w.create("counted", v1alpha1.GoopSpec{Cmd: greets, JobCount: new(int32(len(nodes)))})
		w.complete(each, len(nodes))
		w.complete(counted, len(nodes))
		w.expectEven(w.spread(counted), nodes)
	})

	It("whose container is restarted after its worker finished does not do the work again", Label(e2e.LabelContainers), func(ctx SpecContext) {
		w := alone(ctx)
		nodes := w.nodes()
		node := w.expendable()
		goop := w.create("rebooted", v1alpha1.GoopSpec{Cmd: counts})
		plain := plainDaemonSet(w, sh(`echo run >>/count/runs; echo "runs: $(wc -l </count/runs)"`))
		w.complete(goop, len(nodes))
		pod := w.podOn(goop, node)
		before := w.recorded(goop).Finished
		w.Expect(w.log(pod)).To(Equal("runs: 1\n"))
		other := w.plainPodOn(plain, node)
		w.Expect(w.log(other)).To(Equal("runs: 1\n"))

		restarted := time.Now()
		Expect(cluster.RestartNode(ctx, env.Cluster, node)).To(Succeed())
		w.startedAgain(pod, restarted)
		w.startedAgain(other, restarted)
		w.ready(node)
		w.Expect(w.log(pod)).To(And(ContainSubstring("is not done again"), Not(ContainSubstring("runs: 2"))))
		// What a DaemonSet alone does.
		w.Expect(w.log(other)).To(ContainSubstring("runs: 2"))
		always(w, goop, func(g Gomega, live *v1alpha1.Goop) {
			condition(g, live.Status.Conditions, v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
			g.Expect(live.Status.Succeeded).To(BeEquivalentTo(len(nodes)))
		})
		w.Expect(w.recorded(goop).Finished).To(Equal(before))
	})

	It("that leaves has its unfinished work done elsewhere, and only that; one that joins has its own", func(ctx SpecContext) {
		w := alone(ctx)
		lost := w.expendable()
		nodes := w.nodes()
		rest := slices.DeleteFunc(slices.Clone(nodes), func(node string) bool { return node == lost })
		workers := 2 * len(nodes)

		// 1. It leaves with one worker finished and one at work.
		pods := w.watch()
		leaving := w.create("leaving", v1alpha1.GoopSpec{
			Cmd: secondHangs, JobCount: new(int32(workers)), Env: []v1alpha1.EnvVar{{Name: "LOST", Value: lost}},
		})
		until(w, leaving, func(g Gomega, goop *v1alpha1.Goop) {
			g.Expect(goop.Status.Succeeded).To(BeEquivalentTo(workers - 1))
			g.Expect(goop.Status.Running).To(BeEquivalentTo(1))
		})
		DeferCleanup(func(ctx SpecContext) { (&world{Gomega: Default, ctx: ctx}).join(lost) })
		w.leave(lost)
		w.complete(leaving, workers)
		spread := w.spread(leaving)
		w.Expect(spread).To(HaveKeyWithValue(lost, 1), "what it had finished counts")
		delete(spread, lost)
		w.expectEven(spread, rest)
		for place, times := range pods.of(leaving, v1alpha1.RoleWork) {
			w.Expect(times).To(Equal(1), "%s ran %d times", place, times)
		}

		// 2. It joins while another is at work.
		joining := w.create("joining", v1alpha1.GoopSpec{Cmd: waits})
		w.running(joining, len(rest))
		w.Expect(joining.Status.Desired).To(BeEquivalentTo(len(rest)))
		w.join(lost)
		w.complete(joining, len(nodes))
		w.Expect(w.spread(joining)).To(HaveLen(len(nodes)))
		w.expectOnce(pods, joining)
	})

	It("that is not ready is waited for, not replaced", func(ctx SpecContext) {
		if env.Cluster.RunsContainers() {
			Skip("a node that is stopped takes others' pods along; on the embedded cluster nothing differs to the operator")
		}
		w := alone(ctx)
		name := w.namespace
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{cluster.ManualNodeLabel: "true"}},
			Status:     nodeStatus(corev1.ConditionTrue),
		}
		Expect(env.Client.Create(ctx, node)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { (&world{Gomega: Default, ctx: ctx}).leave(name) })
		w.ready(name)
		goop := w.create("waiting", v1alpha1.GoopSpec{Cmd: onlyOthers, Env: []v1alpha1.EnvVar{{Name: "SLOW", Value: name}}, JobCount: new(int32(len(w.nodes())))})
		w.podOn(goop, name)
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
			g.Expect(w.daemonSets(goop)).To(HaveLen(1), "no worker is placed anew")
			g.Expect(w.pods(goop)).To(HaveLen(int(live.Status.Desired)))
		})
	})
})

// onlyOthers does not end on the node that the variable SLOW names, and succeeds elsewhere.
var onlyOthers = does(`test "$NODE_NAME" != "$SLOW" || sleep 600`, func(pod *corev1.Pod, _ time.Duration) *worker.Record {
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

// expendable is a node that a spec may do without for a while: not the control plane's, nor the operator's. On the
// embedded cluster it is one of the spec's own.
func (w *world) expendable() string {
	GinkgoHelper()
	if !env.Cluster.RunsContainers() {
		name := w.namespace
		w.join(name)
		DeferCleanup(func(ctx SpecContext) { (&world{Gomega: Default, ctx: ctx}).leave(name) })
		return name
	}
	workers, err := env.Cluster.Nodes(w.ctx)
	w.Expect(err).NotTo(HaveOccurred())
	var name string
	// A spec before may have restarted the operator: for a moment it is on more nodes than one.
	w.Eventually(w.ctx, func(g Gomega) {
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

// leave takes a node's object away, if it is there.
func (w *world) leave(name string) {
	GinkgoHelper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.Expect(client.IgnoreNotFound(env.Client.Delete(w.ctx, node))).To(Succeed())
	w.gone(node)
}

// join has a node that has left, or that never was, join, and waits until it is ready.
func (w *world) join(name string) {
	GinkgoHelper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"}}}
	switch err := env.Client.Get(w.ctx, client.ObjectKeyFromObject(node), node); {
	case err == nil:
	case env.Cluster.RunsContainers():
		w.Expect(cluster.RestartKubelet(w.ctx, env.Cluster, name)).To(Succeed())
	default:
		w.Expect(env.Client.Create(w.ctx, node)).To(Succeed())
	}
	w.ready(name)
}

// ready waits until a node is, and takes pods.
func (w *world) ready(name string) {
	GinkgoHelper()
	until(w, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(g Gomega, node *corev1.Node) {
		g.Expect(node.Status.Conditions).To(ContainElement(And(HaveField("Type", corev1.NodeReady), HaveField("Status", corev1.ConditionTrue))))
		g.Expect(node.Spec.Taints).NotTo(ContainElement(HaveField("Key", corev1.TaintNodeNotReady)))
	})
}

func (w *world) cordon(name string, cordoned bool) {
	GinkgoHelper()
	until(w, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(g Gomega, node *corev1.Node) {
		node.Spec.Unschedulable = cordoned
		g.Expect(env.Client.Update(w.ctx, node)).To(Succeed())
	})
}

// startedAgain waits until the work container of a pod has run once more after a moment, and ended.
func (w *world) startedAgain(pod *corev1.Pod, since time.Time) {
	GinkgoHelper()
	until(w, pod, func(g Gomega, p *corev1.Pod) {
		work := statusOf(p)
		g.Expect(work).NotTo(BeNil())
		g.Expect(work.State.Terminated).NotTo(BeNil())
		g.Expect(work.State.Terminated.StartedAt.Time).To(BeTemporally(">", since))
	})
}

// plainPodOn waits for the pod of a plain DaemonSet on a node, until its work has ended.
func (w *world) plainPodOn(daemonSet *appsv1.DaemonSet, node string) *corev1.Pod {
	GinkgoHelper()
	var found *corev1.Pod
	w.Eventually(w.ctx, func(g Gomega) {
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
