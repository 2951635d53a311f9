package e2e

import (
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/shared/binaries"
	"example.com/workbook/shared/expect"
)

// The solutions without an operator: the files in ../../plain.

var _ = Describe("Without an operator", func() {
	spec("a DaemonSet runs a command once on every node, and a shell loop waits until it has", func(w *testEnv) {
		daemonSet := plainDaemonSet(w, nil)
		nodes := w.workers()
		w.simulatePlain(daemonSet, len(nodes))
		dir, err := binaries.Ensure(w.ctx, GinkgoWriter, "kubectl")
		Expect(err).NotTo(HaveOccurred())
		cmd := exec.CommandContext(w.ctx, "sh", "../../plain/watch.sh", "--kubeconfig", env.Cluster.Kubeconfig(), "--context", env.Cluster.Context(), "--namespace", w.namespace)
		cmd.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
		output, err := cmd.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", output)
		Expect(string(output)).To(ContainSubstring("nodes are done"))
		for _, node := range nodes {
			pod := w.plainPodOn(daemonSet, node)
			if env.Cluster.RunsContainers() {
				Expect(w.log(pod)).To(Equal("hello from " + node + "\n"))
			}
		}
	})
	onContainers("a command that fails is retried by the DaemonSet without end, and no status shows the failure", func(w *testEnv) {
		daemonSet := plainDaemonSet(w, fails)
		goop := w.create("bounded", v1alpha1.GoopSpec{Cmd: fails, Retries: new(int32(1))})
		w.failed(goop, v1alpha1.ReasonWorkersFailed)
		until(w, daemonSet, func(g Gomega, d *appsv1.DaemonSet) {
			var list corev1.PodList
			g.Expect(env.Client.List(w.ctx, &list, client.InNamespace(w.namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels))).To(Succeed())
			g.Expect(list.Items).To(ContainElement(Satisfy(func(pod corev1.Pod) bool {
				work := statusOf(&pod)
				return work != nil && work.RestartCount >= 3
			})))
			g.Expect(d.Status.NumberReady).To(BeZero())
			g.Expect(d.Status.Conditions).To(BeEmpty())
		})
	})
})

// fromPlain reads a file of ../../plain, and creates its object.
func fromPlain[T client.Object](w *testEnv, file string, object T, adapt func(*corev1.PodSpec), pod *corev1.PodSpec) T {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("../../plain", file))
	Expect(err).NotTo(HaveOccurred())
	Expect(yaml.UnmarshalStrict(text, object)).To(Succeed())
	object.SetNamespace(w.namespace)
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			containers[i].Image, containers[i].ImagePullPolicy = env.Images["busybox"], corev1.PullIfNotPresent
		}
	}
	adapt(pod)
	Expect(env.Client.Create(w.ctx, object)).To(Succeed())
	return object
}

func plainJob(w *testEnv) *batchv1.Job {
	GinkgoHelper()
	job := &batchv1.Job{}
	return fromPlain(w, "job.yaml", job, func(*corev1.PodSpec) {}, &job.Spec.Template.Spec)
}

// plainDaemonSet creates the DaemonSet of the file, with a directory /count, and with another command if one is given.
func plainDaemonSet(w *testEnv, cmd []string) *appsv1.DaemonSet {
	GinkgoHelper()
	daemonSet := &appsv1.DaemonSet{}
	return fromPlain(w, "daemonset.yaml", daemonSet, func(pod *corev1.PodSpec) {
		if cmd == nil {
			return
		}
		pod.Volumes = []corev1.Volume{{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		pod.InitContainers[0].Command = cmd
		pod.InitContainers[0].VolumeMounts = []corev1.VolumeMount{{Name: "work", MountPath: "/count"}}
	}, &daemonSet.Spec.Template.Spec)
}

func (w *testEnv) podsOfJob(job *batchv1.Job) []corev1.Pod {
	GinkgoHelper()
	var list corev1.PodList
	Expect(env.Client.List(w.ctx, &list, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name})).To(Succeed())
	return list.Items
}

// simulateJob waits until all pods of a Job are on nodes, and simulates their success on the embedded cluster.
func (w *testEnv) simulateJob(job *batchv1.Job) {
	GinkgoHelper()
	Eventually(func() []corev1.Pod { return w.podsOfJob(job) }).WithTimeout(patience).WithPolling(expect.Interval).
		Should(And(HaveLen(int(*job.Spec.Completions)), HaveEach(HaveField("Spec.NodeName", Not(BeEmpty())))))
	if env.Cluster.RunsContainers() {
		return
	}
	for _, pod := range w.podsOfJob(job) {
		until(w, &pod, func(g Gomega, p *corev1.Pod) {
			p.Status.Phase = corev1.PodSucceeded
			g.Expect(env.Client.Status().Update(w.ctx, p)).To(Succeed())
		})
	}
}

// simulatePlain waits until all pods of a plain DaemonSet are on nodes, and simulates the end of their work on the
// embedded cluster.
func (w *testEnv) simulatePlain(daemonSet *appsv1.DaemonSet, nodes int) {
	GinkgoHelper()
	if env.Cluster.RunsContainers() {
		return
	}
	var list corev1.PodList
	Eventually(w.ctx, func(g Gomega) {
		g.Expect(env.Client.List(w.ctx, &list, client.InNamespace(w.namespace), client.MatchingLabels(daemonSet.Spec.Selector.MatchLabels))).To(Succeed())
		g.Expect(list.Items).To(And(HaveLen(nodes), HaveEach(HaveField("Spec.NodeName", Not(BeEmpty())))))
	}).WithTimeout(patience).WithPolling(expect.Interval).Should(Succeed())
	for _, pod := range list.Items {
		until(w, &pod, func(g Gomega, p *corev1.Pod) {
			setWork(p, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", FinishedAt: metav1.Now()}})
			g.Expect(env.Client.Status().Update(w.ctx, p)).To(Succeed())
		})
	}
}
