package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/03-flux/api/v1alpha1"
	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/expect"
)

const (
	// attemptLabel is the label with the attempt of a pod, and instanceLabel that with the name of its Flux.
	attemptLabel  = "flux-framework.org/attempt"
	instanceLabel = "app.kubernetes.io/instance"
	// byHand is a scheduler that does not exist: the test binds the pods.
	byHand = "by-hand"
)

// pods returns the existing pods of a Flux, of all attempts.
func (w *testEnv) pods(flux *v1alpha1.Flux) []corev1.Pod {
	GinkgoHelper()
	var list corev1.PodList
	Expect(env.Client.List(w.ctx, &list, client.InNamespace(flux.Namespace), client.MatchingLabels{instanceLabel: flux.Name})).To(Succeed())
	return list.Items
}

// present returns the existing pods of the current attempt, by rank.
func (w *testEnv) present(g Gomega, flux *v1alpha1.Flux) []*corev1.Pod {
	setup := setupOf(flux)
	g.Expect(env.Client.Get(w.ctx, client.ObjectKeyFromObject(setup), setup)).To(Succeed())
	var found []*corev1.Pod
	for _, pod := range w.pods(flux) {
		if pod.Labels[attemptLabel] == strconv.Itoa(int(setup.Spec.Attempt)) {
			found = append(found, &pod)
		}
	}
	slices.SortFunc(found, func(a, b *corev1.Pod) int { return rankOf(a) - rankOf(b) })
	return found
}

// all waits until the pods of all ranks of the current attempt exist, and returns them by rank.
func (w *testEnv) all(flux *v1alpha1.Flux) []*corev1.Pod {
	GinkgoHelper()
	var found []*corev1.Pod
	Eventually(w.ctx, func(g Gomega) int {
		found = w.present(g, flux)
		return len(found)
	}).WithTimeout(patience).WithPolling(expect.Interval).Should(Equal(int(flux.Spec.Size)), "pods of %s", flux.Name)
	return found
}

// leader waits until the pod of rank 0 of the current attempt exists, and returns it. It may be the last pod that is
// created.
func (w *testEnv) leader(flux *v1alpha1.Flux) *corev1.Pod {
	GinkgoHelper()
	var leader *corev1.Pod
	Eventually(w.ctx, func(g Gomega) {
		found := w.present(g, flux)
		g.Expect(found).NotTo(BeEmpty(), "%s has no pods", flux.Name)
		g.Expect(rankOf(found[0])).To(BeZero())
		leader = found[0]
	}).WithTimeout(patience).WithPolling(expect.Interval).Should(Succeed())
	return leader
}

func rankOf(pod *corev1.Pod) int {
	rank, err := strconv.Atoi(pod.Labels[batchv1.JobCompletionIndexAnnotation])
	if err != nil {
		panic(fmt.Sprintf("pod %s has no index: %v", pod.Name, err))
	}
	return rank
}

// bind binds a pod that waits for the scheduler byHand. The nodes are numbered from 0, modulo their number.
func (w *testEnv) bind(pod *corev1.Pod, node int) (nodeName string) {
	GinkgoHelper()
	nodes, err := env.Cluster.Nodes(w.ctx)
	Expect(err).NotTo(HaveOccurred())
	nodeName = nodes[node%len(nodes)].Name
	target := corev1.ObjectReference{Kind: "Node", Name: nodeName}
	Expect(env.Client.SubResource("binding").Create(w.ctx, pod, &corev1.Binding{Target: target})).To(Succeed())
	return nodeName
}

// simulate changes the status of a pod if there is no kubelet.
func (w *testEnv) simulate(pod *corev1.Pod, act func(*corev1.PodStatus)) {
	GinkgoHelper()
	if env.Cluster.RunsContainers() {
		return
	}
	until(w, pod, func(g Gomega, p *corev1.Pod) {
		g.Expect(p.Spec.NodeName).NotTo(BeEmpty(), "%s is on no node", p.Name)
		act(&p.Status)
		g.Expect(env.Client.Status().Update(w.ctx, p)).To(Succeed())
	})
}

// begin simulates the ranks of the current attempt until the command runs, unless the attempt has ended.
func (w *testEnv) begin(flux *v1alpha1.Flux) {
	GinkgoHelper()
	if env.Cluster.RunsContainers() || hasEnded(w.leader(flux)) {
		return
	}
	for _, pod := range slices.Backward(w.all(flux)) {
		w.simulate(pod, ready)
	}
}

// endLeader simulates the end of rank 0 with its exit code, and the end of its output.
func (w *testEnv) endLeader(flux *v1alpha1.Flux, code int32, output string) {
	GinkgoHelper()
	if leader := w.leader(flux); !hasEnded(leader) {
		w.simulate(leader, ended(code, output))
	}
}

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// started is a container that runs, with a broker that is not connected to any other.
func started(status *corev1.PodStatus) {
	status.Phase = corev1.PodRunning
	state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	setContainer(status, false, state)
}

// ready is a container that has started: the broker of a follower runs, and that of the leader has its quorum.
func ready(status *corev1.PodStatus) {
	status.Phase = corev1.PodRunning
	state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	setContainer(status, true, state)
}

// waiting is a container that the kubelet cannot start.
func waiting(reason, message string) func(*corev1.PodStatus) {
	return func(status *corev1.PodStatus) {
		status.Phase = corev1.PodPending
		state := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
		setContainer(status, false, state)
	}
}

// ended is a container that has ended.
func ended(code int32, output string) func(*corev1.PodStatus) {
	return func(status *corev1.PodStatus) {
		status.Phase = corev1.PodSucceeded
		reason := "Completed"
		if code != 0 {
			status.Phase = corev1.PodFailed
			reason = "Error"
		}
		state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: reason, Message: output, FinishedAt: metav1.Now(),
		}}
		setContainer(status, false, state)
	}
}

func setContainer(status *corev1.PodStatus, isReady bool, state corev1.ContainerState) {
	status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "flux", Image: "flux", Ready: isReady, Started: &isReady, State: state,
	}}
	value := corev1.ConditionFalse
	if isReady {
		value = corev1.ConditionTrue
	}
	for _, conditionType := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = slices.DeleteFunc(status.Conditions, func(c corev1.PodCondition) bool { return c.Type == conditionType })
		status.Conditions = append(status.Conditions, corev1.PodCondition{
			Type: conditionType, Status: value, LastTransitionTime: metav1.Now(),
		})
	}
}

// kill ends a pod's container without warning.
func (w *testEnv) kill(pod *corev1.Pod) {
	GinkgoHelper()
	if !env.Cluster.RunsContainers() {
		w.simulate(pod, ended(137, ""))
		return
	}
	var id string
	until(w, pod, func(g Gomega, p *corev1.Pod) {
		g.Expect(p.Status.ContainerStatuses).To(HaveLen(1))
		_, found, isID := strings.Cut(p.Status.ContainerStatuses[0].ContainerID, "://")
		g.Expect(isID).To(BeTrue(), "the container has not been started")
		id = found
	})
	Expect(cluster.KillContainer(w.ctx, env.Cluster, pod.Spec.NodeName, id)).To(Succeed())
}

// log is what a pod's container has written so far.
func (w *testEnv) log(pod *corev1.Pod) string {
	GinkgoHelper()
	clients, err := kubernetes.NewForConfig(env.Config)
	Expect(err).NotTo(HaveOccurred())
	text, err := clients.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(w.ctx)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// output returns the lines of a Flux's leader that begin with a mark, without the mark. They are sorted, because the
// order across ranks is not defined. Other lines are those of the brokers.
func (w *testEnv) output(flux *v1alpha1.Flux, mark string) []string {
	GinkgoHelper()
	var lines []string
	for line := range strings.Lines(w.log(w.leader(flux))) {
		if text, marked := strings.CutPrefix(strings.TrimSuffix(line, "\n"), mark); marked {
			lines = append(lines, text)
		}
	}
	slices.Sort(lines)
	return lines
}
