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

// What does most of a Goop without an operator: the files in ../../plain.

var _ = env.SideBySide("Without an operator", atOnce,
	spec("a Job spreads its workers over the nodes, and is Complete when all have succeeded", func(w *world) {
		job := plainJob(w)
		w.playJob(job)
		nodes, err := env.Cluster.Nodes(w.ctx)
		w.Expect(err).NotTo(HaveOccurred())
		counts := map[string]int{}
		for _, pod := range w.podsOfJob(job) {
			counts[pod.Spec.NodeName]++
		}
		var names []string
		for _, node := range nodes {
			names = append(names, node.Name)
		}
		w.expectEven(counts, names)
		until(w, job, func(g Gomega, j *batchv1.Job) {
			g.Expect(j.Status.Conditions).To(ContainElement(And(HaveField("Type", batchv1.JobComplete), HaveField("Status", corev1.ConditionTrue))))
		})
	}),
	spec("a DaemonSet runs a command once on every node, and a shell loop waits until it has", func(w *world) {
		daemonSet := plainDaemonSet(w, nil)
		nodes, err := env.Cluster.Nodes(w.ctx)
		w.Expect(err).NotTo(HaveOccurred())
		w.playPlain(daemonSet, len(nodes))
		dir, err := binaries.Ensure(w.ctx, GinkgoWriter, "kubectl")
		w.Expect(err).NotTo(HaveOccurred())
		cmd := exec.CommandContext(w.ctx, "sh", "../../plain/watch.sh", "--kubeconfig", env.Cluster.Kubeconfig(), "--context", env.Cluster.Context(), "--namespace", w.namespace)
		cmd.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
		output, err := cmd.CombinedOutput()
		w.Expect(err).NotTo(HaveOccurred(), "%s", output)
		w.Expect(string(output)).To(ContainSubstring("nodes are done"))
		for _, node := range nodes {
			pod := w.plainPodOn(daemonSet, node.Name)
			if env.Cluster.RunsContainers() {
				w.Expect(w.log(pod)).To(Equal("hello from " + node.Name + "\n"))
			}
		}
	}),
	onContainers("a command that fails is tried again by the DaemonSet, without end, and nobody says that it failed", func(w *world) {
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
	}),
)

var _ = Describe("Without an operator", func() {
	It("a Job leaves out a node that is cordoned, where a Goop does not", func(ctx SpecContext) {
		w := alone(ctx)
		nodes, err := env.Cluster.Nodes(ctx)
		Expect(err).NotTo(HaveOccurred())
		cordoned := nodes[0].Name
		w.cordon(cordoned, true)
		DeferCleanup(func(ctx SpecContext) { (&world{Gomega: Default, ctx: ctx}).cordon(cordoned, false) })
		job := plainJob(w)
		w.Eventually(func() []corev1.Pod { return w.podsOfJob(job) }).WithTimeout(patience).WithPolling(expect.Interval).
			Should(And(HaveLen(6), HaveEach(HaveField("Spec.NodeName", And(Not(BeEmpty()), Not(Equal(cordoned)))))))
		goop := w.create("all", v1alpha1.GoopSpec{Cmd: greets})
		w.complete(goop, len(w.nodes()))
		Expect(w.spread(goop)).To(HaveKey(cordoned))
	})
})

// fromPlain reads a file of ../../plain, and creates its object.
func fromPlain[T client.Object](w *world, file string, object T, adapt func(*corev1.PodSpec), pod *corev1.PodSpec) T {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("../../plain", file))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(yaml.UnmarshalStrict(text, object)).To(Succeed())
	object.SetNamespace(w.namespace)
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			containers[i].Image, containers[i].ImagePullPolicy = env.Images["busybox"], corev1.PullIfNotPresent
		}
	}
	adapt(pod)
	w.Expect(env.Client.Create(w.ctx, object)).To(Succeed())
	return object
}

func plainJob(w *world) *batchv1.Job {
	GinkgoHelper()
	job := &batchv1.Job{}
	return fromPlain(w, "job.yaml", job, func(*corev1.PodSpec) {}, &job.Spec.Template.Spec)
}

// plainDaemonSet is that of the file, with another command if one is given, and with a folder /count.
func plainDaemonSet(w *world, cmd []string) *appsv1.DaemonSet {
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

func (w *world) podsOfJob(job *batchv1.Job) []corev1.Pod {
	GinkgoHelper()
	var list corev1.PodList
	w.Expect(env.Client.List(w.ctx, &list, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name})).To(Succeed())
	return list.Items
}

// playJob waits until all pods of a Job are on nodes, and has each succeed where there is no kubelet.
func (w *world) playJob(job *batchv1.Job) {
	GinkgoHelper()
	w.Eventually(func() []corev1.Pod { return w.podsOfJob(job) }).WithTimeout(patience).WithPolling(expect.Interval).
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

// playPlain waits until all pods of a plain DaemonSet are on nodes, and has the work of each be over where there is no
// kubelet.
func (w *world) playPlain(daemonSet *appsv1.DaemonSet, nodes int) {
	GinkgoHelper()
	if env.Cluster.RunsContainers() {
		return
	}
	var list corev1.PodList
	w.Eventually(w.ctx, func(g Gomega) {
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
