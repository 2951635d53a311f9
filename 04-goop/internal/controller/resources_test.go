package controller

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"example.com/workbook/04-goop/api/v1alpha1"
	"example.com/workbook/04-goop/internal/plan"
)

// aGoop returns a Goop as the API server returns it.
func aGoop(change ...func(*v1alpha1.GoopSpec)) *v1alpha1.Goop {
	goop := &v1alpha1.Goop{
		ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "hive", UID: "the-goop"},
		Spec:       v1alpha1.GoopSpec{Cmd: []string{"hostname"}, Retries: new(int32(3)), CleanupTimeoutSeconds: 300, FailurePolicy: v1alpha1.FailurePolicyContinue},
	}
	for _, one := range change {
		one(&goop.Spec)
	}
	return goop
}

// expectGolden compares an object with a file in testdata. With UPDATE=1 it writes the file.
func expectGolden(t *testing.T, file string, object any) {
	t.Helper()
	g := NewWithT(t)
	text, err := yaml.Marshal(object)
	g.Expect(err).NotTo(HaveOccurred())
	path := filepath.Join("testdata", file)
	if os.Getenv("UPDATE") != "" {
		g.Expect(os.MkdirAll("testdata", 0o755)).To(Succeed())
		g.Expect(os.WriteFile(path, text, 0o600)).To(Succeed())
	}
	want, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	// The files are compared as YAML, because in a copy of this stage with other names the labels have another order.
	g.Expect(text).To(MatchYAML(want), "UPDATE=1 writes the current object to %s", path)
}

// The DaemonSet of a Goop with all fields, and that of a Goop with only the required ones.
func TestDesiredRound(t *testing.T) {
	t.Parallel()
	full := aGoop(func(s *v1alpha1.GoopSpec) {
		s.Cmd = []string{"sh", "-c", "echo $NODE_NAME $(NODE_NAME) $$"}
		s.Image = "example.com/tools:2"
		s.Retries = new(int32(0))
		s.NodeSelector = map[string]string{"disk": "ssd"}
		s.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
		s.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}}
		s.Env = []v1alpha1.EnvVar{{Name: "A", Value: "b"}}
		s.Host = &v1alpha1.HostAccess{Root: v1alpha1.HostRootReadOnly, PID: true, Network: true}
	})
	expectGolden(t, "full.yaml", desiredRound(full, plan.Round{Number: 2, Nodes: []string{"a", "b"}}, testImages))
	expectGolden(t, "least.yaml", desiredRound(aGoop(), plan.Round{Everywhere: true}, testImages))
	expectGolden(t, "cleanup.yaml", desiredCleanup(aGoop(cleanup), []string{"a"}, testImages))
}

// Without host access a worker meets the Pod Security level restricted. With it, only the work container is unrestricted.
func TestOnlyTheWorkContainerIsUnrestricted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		host       *v1alpha1.HostAccess
		restricted bool
		mounts     []string
	}{
		"unset":      {nil, true, []string{"/goop"}},
		"none":       {&v1alpha1.HostAccess{Root: v1alpha1.HostRootNone}, true, []string{"/goop"}},
		"read only":  {&v1alpha1.HostAccess{Root: v1alpha1.HostRootReadOnly}, false, []string{"/goop", "/host"}},
		"read write": {&v1alpha1.HostAccess{Root: v1alpha1.HostRootReadWrite}, false, []string{"/goop", "/host"}},
		"pid":        {&v1alpha1.HostAccess{PID: true}, false, []string{"/goop"}},
		"network":    {&v1alpha1.HostAccess{Network: true}, false, []string{"/goop"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			pod := desiredRound(aGoop(func(s *v1alpha1.GoopSpec) { s.Host = test.host }), plan.Round{}, testImages).Spec.Template.Spec
			install, work, pause := pod.InitContainers[0], pod.InitContainers[1], pod.Containers[0]
			for _, own := range []corev1.Container{install, pause} {
				g.Expect(*own.SecurityContext.RunAsNonRoot).To(BeTrue(), own.Name)
				g.Expect(*own.SecurityContext.ReadOnlyRootFilesystem).To(BeTrue(), own.Name)
			}
			g.Expect(work.SecurityContext != nil).To(Equal(test.restricted))
			var mounts []string
			for _, mount := range work.VolumeMounts {
				mounts = append(mounts, mount.MountPath)
				g.Expect(mount.ReadOnly).To(Equal(mount.MountPath == "/host" && test.host.Root == v1alpha1.HostRootReadOnly))
			}
			g.Expect(mounts).To(Equal(test.mounts))
			g.Expect(pause.VolumeMounts).To(BeEmpty())
			g.Expect(*pod.AutomountServiceAccountToken).To(BeFalse())
		})
	}
}

// The API server accepts every kind of DaemonSet.
func TestDaemonSetsAreValid(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	n := 0
	for _, host := range []*v1alpha1.HostAccess{nil, {Root: v1alpha1.HostRootReadOnly}, {Root: v1alpha1.HostRootReadWrite, PID: true, Network: true}} {
		for _, round := range []plan.Round{{Everywhere: true}, {Everywhere: true, Nodes: []string{"a", "b"}}, {}, {Nodes: []string{"a", "b"}}} {
			goop := aGoop(func(s *v1alpha1.GoopSpec) { s.Host = host })
			goop.Namespace, round.Number = w.namespace, n
			daemonSet := desiredRound(goop, round, testImages)
			w.Expect(w.client.Create(w.ctx, daemonSet)).To(Succeed())
			w.Expect(roundOf(n, daemonSet)).To(Equal(round), "as the API server returns it")
			n++
		}
	}
	goop := aGoop(cleanup)
	goop.Namespace = w.namespace
	w.Expect(w.client.Create(w.ctx, desiredCleanup(goop, []string{"a"}, testImages))).To(Succeed())
}

// expand does what the kubelet does with an argument: it expands $(NAME), and replaces $$ by $
// (k8s.io/kubernetes/third_party/forked/golang/expansion/expand.go).
func expand(arg string) string {
	const escaped = "\x01"
	arg = strings.ReplaceAll(arg, "$$", escaped)
	arg = strings.ReplaceAll(arg, "$(NODE_NAME)", "a")
	return strings.ReplaceAll(arg, escaped, "$")
}

func TestCommandReachesTheWorkerAsWritten(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"$(NODE_NAME)", "$NODE_NAME", "$$(NODE_NAME)", "$$$", "--retries", "--", "it's", "", "a\nb", "牛"} {
		g := NewWithT(t)
		goop := aGoop(func(s *v1alpha1.GoopSpec) { s.Cmd = []string{"echo", arg} })
		command := desiredRound(goop, plan.Round{}, testImages).Spec.Template.Spec.InitContainers[1].Command
		g.Expect(command[:5]).To(Equal([]string{"/goop/worker", "--retries", "3", "--", "echo"}))
		g.Expect(expand(command[5])).To(Equal(arg))
	}
}

// The DaemonSets of 5,000 nodes are well below the size limit of etcd.
func TestSizeOfADaemonSet(t *testing.T) {
	t.Parallel()
	nodes := manyNodes(5000)
	for name, round := range map[string]plan.Round{
		"listed": {Nodes: nodes}, "left out": {Everywhere: true, Nodes: nodes}, "everywhere": {Everywhere: true},
	} {
		daemonSet := desiredRound(aGoop(), round, testImages)
		text, err := yaml.Marshal(daemonSet)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		size := daemonSet.Size()
		t.Logf("%s: %d bytes in the store, %d as YAML", name, size, len(text))
		NewWithT(t).Expect(size).To(BeNumerically("<", 1<<20))
	}
}
