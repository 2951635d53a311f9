package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/record"
	"example.com/workbook/shared/expect"
)

// nodes returns the names of all nodes, including the control plane.
func (w *testEnv) nodes() []string {
	GinkgoHelper()
	names := w.nodesThat(func(*corev1.Node) bool { return true })
	Expect(len(names)).To(BeNumerically(">=", 2), "at least two nodes are needed")
	return names
}

// workers returns the names of the nodes that take pods of DaemonSets without tolerations, also of those that another spec
// has cordoned.
func (w *testEnv) workers() []string {
	GinkgoHelper()
	return w.nodesThat(func(node *corev1.Node) bool {
		return !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key != corev1.TaintNodeUnschedulable })
	})
}

// nodesThat returns the names of nodes, sorted.
func (w *testEnv) nodesThat(match func(*corev1.Node) bool) []string {
	GinkgoHelper()
	var list corev1.NodeList
	Expect(env.Client.List(w.ctx, &list)).To(Succeed())
	var names []string
	for i := range list.Items {
		if match(&list.Items[i]) {
			names = append(names, list.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// pods returns the existing pods of a Goop, including terminating ones.
func (w *testEnv) pods(goop *v1alpha1.Goop) []corev1.Pod {
	GinkgoHelper()
	var list corev1.PodList
	Expect(env.Client.List(w.ctx, &list, client.InNamespace(goop.Namespace), client.MatchingLabels{v1alpha1.LabelGoop: goop.Name})).To(Succeed())
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int {
		return strings.Compare(a.Spec.NodeName+a.Labels[v1alpha1.LabelRound], b.Spec.NodeName+b.Labels[v1alpha1.LabelRound])
	})
	return list.Items
}

// waitForPods waits until a Goop has n pods, each on a node, and returns them.
func (w *testEnv) waitForPods(goop *v1alpha1.Goop, n int) []corev1.Pod {
	GinkgoHelper()
	var found []corev1.Pod
	Eventually(w.ctx, func(g Gomega) {
		found = w.pods(goop)
		g.Expect(found).To(HaveLen(n))
		g.Expect(found).To(HaveEach(HaveField("Spec.NodeName", Not(BeEmpty()))))
	}).WithTimeout(patience).WithPolling(expect.Interval).Should(Succeed(), "pods of %s", goop.Name)
	return found
}

// podOn waits until a Goop has a pod on a node, of round 0, and returns it.
func (w *testEnv) podOn(goop *v1alpha1.Goop, node string) *corev1.Pod {
	GinkgoHelper()
	var found *corev1.Pod
	Eventually(w.ctx, func() *corev1.Pod {
		for _, pod := range w.pods(goop) {
			if pod.Spec.NodeName == node && pod.Labels[v1alpha1.LabelRound] == "0" {
				found = &pod
			}
		}
		return found
	}).WithTimeout(patience).WithPolling(expect.Interval).ShouldNot(BeNil(), "%s has no pod on %s", goop.Name, node)
	return found
}

// noPods waits until a Goop has no pods.
func (w *testEnv) noPods(goop *v1alpha1.Goop, within time.Duration) {
	GinkgoHelper()
	Eventually(w.ctx, func() []corev1.Pod { return w.pods(goop) }).WithTimeout(within).WithPolling(expect.Interval).Should(BeEmpty())
}

// daemonSets returns the DaemonSets of a Goop.
func (w *testEnv) daemonSets(goop *v1alpha1.Goop) []appsv1.DaemonSet {
	GinkgoHelper()
	var list appsv1.DaemonSetList
	Expect(env.Client.List(w.ctx, &list, client.InNamespace(goop.Namespace), client.MatchingLabels{v1alpha1.LabelGoop: goop.Name})).To(Succeed())
	return list.Items
}

// recorded reads the record of a Goop from its ConfigMaps.
func (w *testEnv) recorded(goop *v1alpha1.Goop) *record.Record {
	GinkgoHelper()
	shards := map[int]string{}
	for number := 0; ; number++ {
		shard := &corev1.ConfigMap{}
		err := env.Client.Get(w.ctx, client.ObjectKey{Namespace: goop.Namespace, Name: fmt.Sprintf("%s-record-%d", goop.Name, number)}, shard)
		if apierrors.IsNotFound(err) {
			break
		}
		Expect(err).NotTo(HaveOccurred())
		shards[number] = shard.Data[record.Key]
	}
	all, err := record.Read(shards, len(shards))
	Expect(err).NotTo(HaveOccurred())
	return all
}

// spread returns how many workers of a Goop have finished on each node, according to the record.
func (w *testEnv) spread(goop *v1alpha1.Goop) map[string]int {
	GinkgoHelper()
	counts := map[string]int{}
	for place := range w.recorded(goop).Finished {
		counts[place.Node]++
	}
	return counts
}

// expectEven asserts that the counts of nodes differ by one at most. A node without a count has 0.
func (w *testEnv) expectEven(counts map[string]int, nodes []string) {
	GinkgoHelper()
	var all []int
	for _, node := range nodes {
		all = append(all, counts[node])
	}
	Expect(slices.Collect(maps.Keys(counts))).To(HaveEach(BeElementOf(nodes)))
	Expect(slices.Max(all)-slices.Min(all)).To(BeNumerically("<=", 1), "%v", counts)
}

// leftovers returns the objects of a namespace that this stage may have created.
func (w *testEnv) leftovers() []string {
	GinkgoHelper()
	var left []string
	for _, list := range []client.ObjectList{
		&v1alpha1.GoopList{}, &appsv1.DaemonSetList{}, &appsv1.ControllerRevisionList{}, &corev1.PodList{}, &corev1.ConfigMapList{},
	} {
		Expect(env.Client.List(w.ctx, list, client.InNamespace(w.namespace))).To(Succeed())
		Expect(apimeta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object)
			// Kubernetes creates this one in each namespace.
			if object.GetName() != "kube-root-ca.crt" {
				left = append(left, fmt.Sprintf("%T %s", object, object.GetName()))
			}
			return nil
		})).To(Succeed())
	}
	return left
}

// leaves waits until the namespace has only these objects.
func (w *testEnv) leaves(objects ...any) {
	GinkgoHelper()
	Eventually(w.leftovers).WithTimeout(patience).WithPolling(expect.Interval).Should(ConsistOf(objects...))
}

// hasEvent waits for an Event about a Goop, which may no longer exist, and returns its note.
func (w *testEnv) hasEvent(goop *v1alpha1.Goop, kind, reason string) (note string) {
	GinkgoHelper()
	Eventually(w.ctx, func(g Gomega) {
		var list eventsv1.EventList
		g.Expect(env.Client.List(w.ctx, &list, client.InNamespace(goop.Namespace))).To(Succeed())
		i := slices.IndexFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Regarding.UID == goop.UID && e.Reason == reason && e.Type == kind
		})
		g.Expect(i).NotTo(Equal(-1), "no Event %s %s", kind, reason)
		note = list.Items[i].Note
	}).WithTimeout(patience).WithPolling(expect.Interval).Should(Succeed())
	return note
}

// log returns the output of a pod's work container since its last start.
func (w *testEnv) log(pod *corev1.Pod) string {
	GinkgoHelper()
	clients, err := kubernetes.NewForConfig(env.Config)
	Expect(err).NotTo(HaveOccurred())
	text, err := clients.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: v1alpha1.WorkContainer}).DoRaw(w.ctx)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// outputs returns the output of a Goop's workers by node and round: "worker/0".
func (w *testEnv) outputs(goop *v1alpha1.Goop) map[string]string {
	GinkgoHelper()
	outputs := map[string]string{}
	for _, pod := range w.pods(goop) {
		outputs[pod.Spec.NodeName+"/"+pod.Labels[v1alpha1.LabelRound]] = w.log(&pod)
	}
	return outputs
}

// label sets a label of a node, or removes it if the value is empty. Only specs that use the label depend on it.
func (w *testEnv) label(node, key, value string) {
	GinkgoHelper()
	set := strconv.Quote(value)
	if value == "" {
		set = "null"
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, key, set)
	target := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	Expect(env.Client.Patch(w.ctx, target, client.RawPatch("application/merge-patch+json", patch))).To(Succeed())
}
