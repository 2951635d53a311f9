package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/workbook/shared/binaries"
	"example.com/workbook/shared/proc"
)

// serveVariable makes the test binary a supervisor, as `harness cluster serve` is one.
const serveVariable = "HARNESS_TEST_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(serveVariable) == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := Serve(ctx, os.Stdout, ""); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// limit bounds each wait of this test.
const limit = 30 * time.Second

func TestEmbedded(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an embedded cluster four times")
	}
	// The programs come from the usual cache, all else is the test's own.
	dir, err := binaries.Ensure(t.Context(), os.Stdout, componentNames...)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBEBUILDER_ASSETS", dir)
	t.Setenv("HARNESS_CACHE", t.TempDir())
	repo := inRepository(t)
	addStage(t, filepath.Join(repo, "05-teapot"), teapots)
	addStage(t, filepath.Join(repo, "06-broken"), "kind: [")
	name := fmt.Sprintf("test-%d", os.Getpid())
	t.Cleanup(func() {
		if err := deleteEmbedded(context.Background(), io.Discard, name); err != nil {
			t.Error(err)
		}
	})
	l, err := embeddedLayout(name)
	if err != nil {
		t.Fatal(err)
	}
	e := embeddedTest{t, name, l}

	e.comesUpAndIsReused()
	e.killedOwnerIsRepaired()
	e.lostProcessEndsTheRest()
	e.endsWithItsMaker()
	e.interruptedStartLeavesNothing()
	e.deleteLeavesNothing()
}

type embeddedTest struct {
	t      *testing.T
	name   string
	layout layout
}

// ensure brings the cluster up, by a supervisor if detached, and returns what was said.
func (e embeddedTest) ensure(detached bool) (c Cluster, created bool, said string) {
	e.t.Helper()
	options := Options{Kind: KindEmbedded, Name: e.name}
	if detached {
		e.t.Setenv(serveVariable, "1")
		options.Supervisor = []string{os.Args[0]}
	}
	var out bytes.Buffer
	c, created, err := Ensure(e.t.Context(), &out, options)
	if err != nil {
		e.t.Fatalf("%v; said: %s", err, out.String())
	}
	return c, created, out.String()
}

func (e embeddedTest) state() *state {
	e.t.Helper()
	s, err := e.layout.read()
	if err != nil || s == nil {
		e.t.Fatalf("reading the state: %v, %v", s, err)
	}
	return s
}

// goneAll waits until none of the processes runs.
func (e embeddedTest) goneAll(procs []proc.Process) {
	e.t.Helper()
	for _, p := range procs {
		if !p.Gone(e.t.Context(), limit) {
			e.t.Errorf("%s (pid %d) still runs", p.Name, p.PID)
		}
	}
}

func (e embeddedTest) comesUpAndIsReused() {
	began := time.Now()
	c, created, _ := e.ensure(true)
	if !created {
		e.t.Fatal("there was nothing to reuse")
	}
	e.t.Logf("up after %s", time.Since(began).Round(time.Millisecond))
	e.collectsGarbageAtOnce(c)
	e.saysWhichCRDsAreNotInstalled()
	e.runsPods(c)
	if _, created, said := e.ensure(true); created || said != "" {
		e.t.Errorf("a healthy cluster was not reused: %s", said)
	}
}

// runsPods creates a Deployment and waits until the simulated nodes have it available, and one in a
// namespace for manual pods, which has to stay pending. A node that is left to the test has to stay as it is.
func (e embeddedTest) runsPods(c Cluster) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), limit)
	defer cancel()
	cfg, err := c.RESTConfig()
	if err != nil {
		e.t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		e.t.Fatal(err)
	}
	manual := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "manual", Labels: map[string]string{ManualPodsLabel: "true"}}}
	if _, err := clients.CoreV1().Namespaces().Create(ctx, manual, metav1.CreateOptions{}); err != nil {
		e.t.Fatal(err)
	}
	node := simulatedNode("manual")
	node.Labels[ManualNodeLabel] = "true"
	if _, err := clients.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		e.t.Fatal(err)
	}
	for _, namespace := range []string{"manual", "default"} {
		if _, err := clients.AppsV1().Deployments(namespace).Create(ctx, deployment(), metav1.CreateOptions{}); err != nil {
			e.t.Fatal(err)
		}
	}
	err = poll(ctx, "the Deployment to be available", func(ctx context.Context) (bool, error) {
		d, err := clients.AppsV1().Deployments("default").Get(ctx, "sleeper", metav1.GetOptions{})
		return err == nil && d.Status.AvailableReplicas == 3, err
	})
	if err != nil {
		e.t.Fatal(err)
	}
	if node, err = clients.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{}); err != nil || len(node.Status.Conditions) > 0 {
		e.t.Errorf("a node that is left to the test has the status %v (%v)", node.Status, err)
	}
	if err := poll(ctx, "the manual pods to be scheduled", e.manualPods(clients)); err != nil {
		e.t.Fatal(err)
	}
}

// manualPods reports whether the pods that are left to the test are on nodes. They must not have got any further.
func (e embeddedTest) manualPods(clients kubernetes.Interface) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		pods, err := clients.CoreV1().Pods("manual").List(ctx, metav1.ListOptions{})
		if err != nil || len(pods.Items) != 3 {
			return false, err
		}
		for _, pod := range pods.Items {
			if pod.Spec.NodeName == "" {
				return false, nil
			}
			if pod.Status.Phase != corev1.PodPending {
				e.t.Errorf("a pod that is left to the test is %s", pod.Status.Phase)
			}
		}
		return true, nil
	}
}

func deployment() *appsv1.Deployment {
	labels, replicas := map[string]string{"app": "sleeper"}, int32(3)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "sleeper"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "sleeper", Image: "example.com/never-pulled"}}},
			},
		},
	}
}

func (e embeddedTest) killedOwnerIsRepaired() {
	before := e.state()
	if err := syscall.Kill(int(before.Owner.PID), syscall.SIGKILL); err != nil {
		e.t.Fatal(err)
	}
	if !before.Owner.Gone(e.t.Context(), limit) {
		e.t.Fatal("the supervisor survived SIGKILL")
	}
	_, created, said := e.ensure(true)
	if !created {
		e.t.Error("a cluster without its owner was used")
	}
	if !strings.Contains(said, "was killed; replacing it") {
		e.t.Errorf("it was not said what was found: %s", said)
	}
	e.goneAll(before.Processes)
}

func (e embeddedTest) lostProcessEndsTheRest() {
	before := e.state()
	for _, p := range before.Processes {
		if p.Name == "kwok" {
			if err := syscall.Kill(int(p.PID), syscall.SIGKILL); err != nil {
				e.t.Fatal(err)
			}
			e.goneAll([]proc.Process{p})
		}
	}
	if _, err := Find(e.t.Context(), Options{Kind: KindEmbedded, Name: e.name}); !errors.Is(err, ErrNotUp) {
		e.t.Errorf("a cluster that lost kwok counts as up: %v", err)
	}
	e.goneAll(append(before.Processes, before.Owner))
}

func (e embeddedTest) endsWithItsMaker() {
	c, created, _ := e.ensure(false)
	if !created {
		e.t.Fatal("there was nothing to reuse")
	}
	s := e.state()
	if s.Owner.PID != int32(os.Getpid()) {
		e.t.Errorf("the owner is %d, want this process", s.Owner.PID)
	}
	if err := c.Close(e.t.Context()); err != nil {
		e.t.Fatal(err)
	}
	e.goneAll(s.Processes)
}

// interruptedStartLeavesNothing ends the context while the API server starts.
func (e embeddedTest) interruptedStartLeavesNothing() {
	ctx, cancel := context.WithCancel(e.t.Context())
	defer cancel()
	var seen []proc.Process
	go func() {
		for ctx.Err() == nil {
			if seen = e.layout.remains(ctx); len(seen) > 1 {
				cancel()
			}
		}
	}()
	_, _, err := Ensure(ctx, io.Discard, Options{Kind: KindEmbedded, Name: e.name})
	if !errors.Is(err, context.Canceled) {
		e.t.Fatalf("got error %v, want that of the context", err)
	}
	if len(seen) < 2 {
		e.t.Fatalf("the start was interrupted before anything ran: %v", seen)
	}
	e.goneAll(seen)
	if s, err := e.layout.read(); s != nil || err != nil {
		e.t.Errorf("a state is left: %v, %v", s, err)
	}
}

func (e embeddedTest) deleteLeavesNothing() {
	e.ensure(true)
	s := e.state()
	if err := deleteEmbedded(e.t.Context(), io.Discard, e.name); err != nil {
		e.t.Fatal(err)
	}
	e.goneAll(append(s.Processes, s.Owner))
	if _, err := os.Stat(e.layout.dir); !errors.Is(err, os.ErrNotExist) {
		e.t.Errorf("%s is left: %v", e.layout.dir, err)
	}
}
