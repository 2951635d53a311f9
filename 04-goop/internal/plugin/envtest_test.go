package plugin

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// kubernetesVersion is what envtest downloads if KUBEBUILDER_ASSETS is not set.
const kubernetesVersion = "v1.37.0"

// server is a real etcd and API server, for what the fake cannot prove: that requests, watches and pods are as in the
// API. No kubelet runs, so there are no logs.
type server struct {
	env        *envtest.Environment
	kubeconfig string
	client     client.WithWatch
}

var (
	stopServer = func() {}
	// stopping is locked while the API server is started or stopped.
	stopping sync.Mutex
)

// stopOnCtrlC stops etcd and the API server when a terminal interrupts the tests: they have process groups of their own.
func stopOnCtrlC() {
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, os.Interrupt, syscall.SIGTERM)
	<-ends
	stopping.Lock()
	stopServer()
	os.Exit(130)
}

var startServer = sync.OnceValues(func() (*server, error) {
	go stopOnCtrlC()
	stopping.Lock()
	defer stopping.Unlock()
	s, err := newServer()
	if err != nil {
		// A port that was free may have been taken before the API server listened: a second server has other ports.
		stopServer()
		s, err = newServer()
	}
	return s, err
})

func newServer() (*server, error) {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	env := &envtest.Environment{
		UseExistingCluster:          new(false), // whatever USE_EXISTING_CLUSTER is
		Scheme:                      scheme,
		CRDDirectoryPaths:           []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing:       true,
		DownloadBinaryAssets:        os.Getenv("KUBEBUILDER_ASSETS") == "",
		DownloadBinaryAssetsVersion: kubernetesVersion,
	}
	dir, err := os.MkdirTemp("", "kubectl-goop-envtest-")
	if err != nil {
		return nil, err
	}
	stopServer = func() {
		_ = env.Stop()
		_ = os.RemoveAll(dir)
	}
	config, err := env.Start()
	if err != nil {
		return nil, err
	}
	s := &server{env: env, kubeconfig: filepath.Join(dir, "kubeconfig")}
	if err := os.WriteFile(s.kubeconfig, env.KubeConfig, 0o600); err != nil {
		return nil, err
	}
	s.client, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	return s, err
}

// operate simulates the operator and the kubelet of one node, for every new Goop, until the test ends.
func (s *server) operate(t *testing.T, work func(ctx context.Context, g *WithT, goop *v1alpha1.Goop)) {
	t.Helper()
	g := NewWithT(t)
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	var list v1alpha1.GoopList
	g.Expect(s.client.List(ctx, &list)).To(Succeed())
	watch, err := s.client.Watch(ctx, &v1alpha1.GoopList{}, &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion},
	})
	g.Expect(err).NotTo(HaveOccurred())
	var working sync.WaitGroup
	t.Cleanup(working.Wait)
	working.Go(func() {
		defer watch.Stop()
		for {
			select {
			case event := <-watch.ResultChan():
				if goop, ok := event.Object.(*v1alpha1.Goop); ok && event.Type == "ADDED" {
					work(ctx, g, goop)
				}
			case <-ctx.Done():
				return
			}
		}
	})
}

// workerOf creates a pod whose worker has left its record.
func (s *server) workerOf(ctx context.Context, g *WithT, goop *v1alpha1.Goop, record string) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: goop.Name + "-0", Namespace: goop.Namespace,
			Labels: map[string]string{
				v1alpha1.LabelGoop: goop.Name, v1alpha1.LabelRole: v1alpha1.RoleWork, v1alpha1.LabelRound: "0",
			},
		},
		Spec: corev1.PodSpec{
			NodeName:       "n1",
			InitContainers: []corev1.Container{{Name: v1alpha1.WorkContainer, Image: "busybox"}},
			Containers:     []corev1.Container{{Name: "pause", Image: "pause"}},
		},
	}
	g.Expect(s.client.Create(ctx, pod)).To(Succeed())
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{
		Name: v1alpha1.WorkContainer, ContainerID: "id://1", Image: "busybox", ImageID: "1",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: record, ContainerID: "id://1"}},
	}}
	g.Expect(s.client.Status().Update(ctx, pod)).To(Succeed())
}

func (s *server) status(ctx context.Context, g *WithT, goop *v1alpha1.Goop, status v1alpha1.GoopStatus) {
	for i := range status.Conditions {
		status.Conditions[i].LastTransitionTime = metav1.Now()
	}
	goop.Status = status
	g.Expect(s.client.Status().Update(ctx, goop)).To(Succeed())
}

func apiServer(t *testing.T) *server {
	t.Helper()
	s, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *server) goops(g *WithT) []v1alpha1.Goop {
	var list v1alpha1.GoopList
	g.Expect(s.client.List(context.Background(), &list)).To(Succeed())
	return list.Items
}

func TestRunOnAnAPIServer(t *testing.T) {
	g, s := NewWithT(t), apiServer(t)
	s.operate(t, func(ctx context.Context, g *WithT, goop *v1alpha1.Goop) {
		g.Expect(goop.Name).To(MatchRegexp("^run-[a-z2-7]{10}$"))
		s.workerOf(ctx, g, goop, `{"exitCode":6,"tries":1,"output":"recorded"}`)
		s.status(ctx, g, goop, v1alpha1.GoopStatus{
			ObservedGeneration: 1, Desired: 1, Failed: 1, ExitCode: new(int32(6)),
			Failures: []v1alpha1.Failure{{Node: "n1", ExitCode: 6, Output: "recorded"}},
			Conditions: []metav1.Condition{{
				Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonWorkersFailed, Message: "1 of 1",
			}},
		})
	})
	r := runProgram(t, s.kubeconfig, "run", "--nodes", "a=b", "--count", "1", "--host-root", "rw", "--tolerate-all",
		"--timeout", "1m", "--image", "busybox", "--", "uname", "-a")
	g.Expect(r.code).To(Equal(6), r.err)
	// No kubelet has the log.
	g.Expect(r.out).To(Equal("n1: recorded\n"))
	g.Expect(r.err).To(ContainSubstring("shown is the end of it, at most 2 KiB, from the record"))
	g.Expect(s.goops(g)).To(BeEmpty())
}

func TestRunTimesOutOnAnAPIServer(t *testing.T) {
	g, s := NewWithT(t), apiServer(t)
	s.operate(t, func(ctx context.Context, g *WithT, goop *v1alpha1.Goop) {
		s.status(ctx, g, goop, v1alpha1.GoopStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionRunning, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNoEligibleNodes, Message: "no node",
		}}})
	})
	// The time-out is that of the creation too, which a busy API server delays.
	r := runProgram(t, s.kubeconfig, "run", "--timeout", "10s", "--", "true")
	g.Expect(r.code).To(Equal(124), r.err)
	g.Expect(r.err).To(And(HavePrefix("goop: NoEligibleNodes: no node\n"), ContainSubstring("is deleted, which ends its workers")))
	g.Expect(s.goops(g)).To(BeEmpty())
}

func TestCommandsOnAnAPIServer(t *testing.T) {
	g, s := NewWithT(t), apiServer(t)
	s.operate(t, func(context.Context, *WithT, *v1alpha1.Goop) {})
	r := runProgram(t, s.kubeconfig, "run", "--keep", "--timeout", "10s", "--", "true")
	g.Expect(r.code).To(Equal(124), r.err)
	kept := s.goops(g)
	g.Expect(kept).To(HaveLen(1))
	g.Expect(kept[0].Spec.Suspend).To(BeTrue())
	g.Expect(kept[0].Spec.ActiveDeadlineSeconds).To(HaveValue(BeEquivalentTo(25)))
	g.Expect(runProgram(t, s.kubeconfig, "ls", "-A").out).To(ContainSubstring(kept[0].Name))
	g.Expect(runProgram(t, s.kubeconfig, "logs", kept[0].Name)).To(Equal(ran{}))
	g.Expect(runProgram(t, s.kubeconfig, "cancel", kept[0].Name).code).To(Equal(0))
	g.Expect(s.goops(g)).To(BeEmpty())
	r = runProgram(t, s.kubeconfig, "wait", "absent")
	g.Expect(r).To(Equal(ran{1, "", "error: goops.goop.example.com \"absent\" not found\n"}))
	r = runProgram(t, s.kubeconfig, "run", "--count", "200000", "--", "true")
	g.Expect(r.code).To(Equal(1))
	g.Expect(r.err).To(ContainSubstring("spec.jobCount: Invalid value"))
	r = runProgram(t, s.kubeconfig, "run", "-n", "nowhere", "--", "true")
	g.Expect(r.code).To(Equal(1))
	g.Expect(r.err).To(Equal("error: creating the Goop: namespaces \"nowhere\" not found\n"))
}
