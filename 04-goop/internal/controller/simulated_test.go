package controller

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/worker"
)

// node returns the name of a node of this test.
func (f *goopTestEnv) node(short string) string { return f.namespace + "-" + short }

// join adds a node.
func (f *goopTestEnv) join(short string, taints ...corev1.Taint) {
	f.Expect(f.client.Create(f.ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: f.node(short), Labels: map[string]string{testLabel: f.namespace}},
		Spec:       corev1.NodeSpec{Taints: taints},
	})).To(Succeed())
	// Admission taints a new node as not ready. The kubelet removes the taint.
	f.taint(short, taints...)
}

func (f *goopTestEnv) taint(short string, taints ...corev1.Taint) {
	var node corev1.Node
	f.Expect(f.client.Get(f.ctx, client.ObjectKey{Name: f.node(short)}, &node)).To(Succeed())
	node.Spec.Taints = taints
	f.Expect(f.client.Update(f.ctx, &node)).To(Succeed())
}

// leave deletes a node and its pods.
func (f *goopTestEnv) leave(short string) {
	f.Expect(f.client.Delete(f.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: f.node(short)}})).To(Succeed())
	for _, pod := range f.podList() {
		if pod.Spec.NodeName == f.node(short) {
			f.removePod(&pod)
		}
	}
	f.settle()
}

func (f *goopTestEnv) nodes() []corev1.Node {
	var list corev1.NodeList
	if err := f.client.List(f.ctx, &list, client.MatchingLabels{testLabel: f.namespace}); err != nil {
		return nil
	}
	return list.Items
}

func (f *goopTestEnv) podList() []corev1.Pod {
	var list corev1.PodList
	f.Expect(f.client.List(f.ctx, &list, client.InNamespace(f.namespace))).To(Succeed())
	return list.Items
}

// observeDaemonSets simulates the last step of a sync of the DaemonSet controller, which writes the observedGeneration of
// the DaemonSets that it has read, except those that are being deleted. It reports whether there was anything to write.
func (f *goopTestEnv) observeDaemonSets(daemonSets map[string]*appsv1.DaemonSet) bool {
	changed := false
	for _, daemonSet := range daemonSets {
		if daemonSet.DeletionTimestamp != nil || daemonSet.Status.ObservedGeneration == daemonSet.Generation {
			continue
		}
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"observedGeneration":%d}}`, daemonSet.Generation))
		f.Expect(client.IgnoreNotFound(f.client.Status().Patch(f.ctx, daemonSet, patch))).To(Succeed())
		changed = true
	}
	return changed
}

// simulateDaemonSets simulates the DaemonSet controller, the garbage collector, and kubelets that delete terminated pods.
// It reports whether there was anything to do.
func (f *goopTestEnv) simulateDaemonSets() bool {
	changed := false
	daemonSets, nodes, pods := f.daemonSets(), f.nodes(), f.podList()
	has := map[string]bool{}
	for i := range pods {
		pod := &pods[i]
		daemonSet := ownerAmong(daemonSets, pod)
		at := slices.IndexFunc(nodes, func(node corev1.Node) bool { return node.Name == pod.Spec.NodeName })
		switch {
		case metav1.GetControllerOf(pod) == nil:
			if adopter := f.adopt(daemonSets, pod); adopter != nil {
				has[adopter.Name+" "+pod.Spec.NodeName], changed = true, true
			}
		case daemonSet == nil, at < 0, pod.DeletionTimestamp != nil, !matches(daemonSet, &nodes[at]):
			f.removePod(pod)
			changed = true
		default:
			has[daemonSet.Name+" "+pod.Spec.NodeName] = true
		}
	}
	for name, daemonSet := range daemonSets {
		for i := range nodes {
			if has[name+" "+nodes[i].Name] || !matches(daemonSet, &nodes[i]) {
				continue
			}
			f.makePod(daemonSet, nodes[i].Name)
			changed = true
		}
	}
	return f.observeDaemonSets(daemonSets) || changed
}

// adopt simulates the DaemonSet controller, which adopts pods without an owner.
func (f *goopTestEnv) adopt(daemonSets map[string]*appsv1.DaemonSet, pod *corev1.Pod) *appsv1.DaemonSet {
	for _, daemonSet := range daemonSets {
		selector, err := metav1.LabelSelectorAsSelector(daemonSet.Spec.Selector)
		f.Expect(err).NotTo(HaveOccurred())
		if selector.Matches(labels.Set(pod.Labels)) && pod.DeletionTimestamp == nil && daemonSet.DeletionTimestamp == nil {
			pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(daemonSet, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}
			f.Expect(f.client.Update(f.ctx, pod)).To(Succeed())
			return daemonSet
		}
	}
	return nil
}

func ownerAmong(daemonSets map[string]*appsv1.DaemonSet, pod *corev1.Pod) *appsv1.DaemonSet {
	for _, daemonSet := range daemonSets {
		if metav1.IsControlledBy(pod, daemonSet) {
			return daemonSet
		}
	}
	return nil
}

// matches does what the DaemonSet controller does with selector, affinity and taints, as far as this operator uses them.
func matches(daemonSet *appsv1.DaemonSet, node *corev1.Node) bool {
	pod := daemonSet.Spec.Template.Spec
	for name, value := range pod.NodeSelector {
		if node.Labels[name] != value {
			return false
		}
	}
	for _, taint := range node.Spec.Taints {
		if !tolerated(pod.Tolerations, &taint) && !tolerated(temporaryTaints, &taint) {
			return false
		}
	}
	if pod.Affinity == nil || pod.Affinity.NodeAffinity == nil || pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	terms := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	return slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool {
		for _, label := range term.MatchExpressions {
			if _, ok := node.Labels[label.Key]; label.Operator != corev1.NodeSelectorOpExists || !ok {
				return false
			}
		}
		for _, field := range term.MatchFields {
			if (field.Values[0] == node.Name) != (field.Operator == corev1.NodeSelectorOpIn) {
				return false
			}
		}
		return true
	})
}

func (f *goopTestEnv) makePod(daemonSet *appsv1.DaemonSet, node string) {
	pod := podOf(daemonSet, node)
	f.Expect(f.client.Create(f.ctx, pod)).To(Succeed())
	f.pods[strings.TrimPrefix(node, f.namespace+"-")+"/"+strings.TrimPrefix(daemonSet.Name, "job-")]++
}

// podOf returns the pod that the DaemonSet controller creates from a template.
func podOf(daemonSet *appsv1.DaemonSet, node string) *corev1.Pod {
	// The affinity of the template may have thousands of nodes, and the pod does not need it.
	template := daemonSet.Spec.Template
	template.Spec.Affinity = nil
	template = *template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.GenerateName, pod.Namespace = daemonSet.Name+"-", daemonSet.Namespace
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(daemonSet, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}
	pod.Spec.NodeName = node
	return pod
}

func (f *goopTestEnv) removePod(pod *corev1.Pod) {
	f.Expect(client.IgnoreNotFound(f.client.Delete(f.ctx, pod, client.GracePeriodSeconds(0)))).To(Succeed())
}

// pod returns the pod of a place, which is a node and a round or the cleanup: "a/0", "b/cleanup".
func (f *goopTestEnv) pod(place string) *corev1.Pod {
	short, round, _ := strings.Cut(place, "/")
	for _, pod := range f.podList() {
		if pod.Spec.NodeName == f.node(short) && strings.HasPrefix(pod.Name, "job-"+round+"-") {
			return &pod
		}
	}
	f.Expect(place).To(BeEmpty(), "there is no such pod")
	return nil
}

// places returns the places that have a pod now.
func (f *goopTestEnv) places() []string {
	var all []string
	for _, pod := range f.podList() {
		round := strings.TrimPrefix(pod.Name[:strings.LastIndexByte(pod.Name, '-')], "job-")
		all = append(all, strings.TrimPrefix(pod.Spec.NodeName, f.namespace+"-")+"/"+round)
	}
	slices.Sort(all)
	return all
}

// kubelet writes the status of the work container of a place.
func (f *goopTestEnv) kubelet(place string, state corev1.ContainerState) {
	pod := f.pod(place)
	setWork(pod, state)
	f.Expect(f.client.Status().Update(f.ctx, pod)).To(Succeed())
}

func setWork(pod *corev1.Pod, state corev1.ContainerState) {
	pod.Status.Phase = corev1.PodPending
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{
		{Name: installContainer, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}},
		{Name: v1alpha1.WorkContainer, Image: "busybox", State: state},
	}
}

// runs simulates kubelets that have started the work of these places.
func (f *goopTestEnv) runs(places ...string) {
	for _, place := range places {
		f.kubelet(place, isRunning)
	}
	f.settle()
}

// ends simulates kubelets that report the end of the work of these places.
func (f *goopTestEnv) ends(exitCode int32, output string, places ...string) {
	for _, place := range places {
		f.kubelet(place, hasFinished(exitCode, output))
	}
	f.settle()
}

var isRunning = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}

// hasFinished is the state of a work container that has left its record.
func hasFinished(exitCode int32, output string) corev1.ContainerState {
	message, err := json.Marshal(worker.Record{ExitCode: exitCode, Tries: 1, Output: output})
	if err != nil {
		panic(fmt.Sprintf("a record is always JSON: %v", err))
	}
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", Message: string(message)}}
}

func isWaiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}
