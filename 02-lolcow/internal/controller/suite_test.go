package controller

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

const (
	serverImage = "example.com/lolcow:test"

	// kubernetesVersion is what envtest downloads where KUBEBUILDER_ASSETS names no binaries.
	kubernetesVersion = "v1.37.0"
)

var scheme = runtime.NewScheme()

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
}

// server is a real etcd and API server, which the tests of this package share: each test has its own namespace. No
// controller of Kubernetes runs, so the tests simulate the ones they need.
type server struct {
	env      *envtest.Environment
	mapper   apimeta.RESTMapper
	auditLog string
}

// startServer starts the server when the first test needs it: the unit tests do not.
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
	dir, err := os.MkdirTemp("", "lolcow-envtest-")
	if err != nil {
		return nil, err
	}
	stopServer = func() { _ = os.RemoveAll(dir) }
	s := &server{auditLog: filepath.Join(dir, "audit.log"), env: &envtest.Environment{
		UseExistingCluster:          new(false), // whatever USE_EXISTING_CLUSTER is
		Scheme:                      scheme,
		CRDDirectoryPaths:           []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing:       true,
		DownloadBinaryAssets:        os.Getenv("KUBEBUILDER_ASSETS") == "",
		DownloadBinaryAssetsVersion: kubernetesVersion,
	}}
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	s.env.ControlPlane.GetAPIServer().Configure().
		Set("audit-policy-file", policy).
		Set("audit-log-path", s.auditLog).
		Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	if _, err := s.env.Start(); err != nil {
		// The API server runs even if it rejects the CRDs.
		_ = s.env.Stop()
		return nil, fmt.Errorf("starting the API server: %w", err)
	}
	stopServer = func() {
		if err := s.env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the API server:", err)
		}
		_ = os.RemoveAll(dir)
	}
	// All clients share one mapper, because each mapper requests the list of all kinds from the API server.
	if s.mapper, err = mapperOf(s.env.Config); err != nil {
		stopServer()
		return nil, err
	}
	return s, nil
}

func mapperOf(config *rest.Config) (apimeta.RESTMapper, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return apiutil.NewDynamicRESTMapper(config, httpClient)
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

func TestMain(m *testing.M) {
	// Each test has its own log. Logs without a test are discarded.
	ctrl.SetLogger(logr.Discard())
	// A busy machine needs more than the second that is the default.
	SetDefaultEventuallyTimeout(10 * time.Second)
	code := m.Run()
	stopping.Lock()
	stopServer()
	os.Exit(code)
}

func apiServer(t *testing.T) *server {
	t.Helper()
	s, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Tests that name a node port take one of 30000 to 30085: where a Service names none, the API server prefers to choose
// among those above (k8s.io/kubernetes/pkg/registry/core/service/portallocator, calculateRangeOffset).

// testEnv is one test's namespace on the API server, and a reconciler that the test calls itself.
type testEnv struct {
	*WithT
	ctx        context.Context
	config     *rest.Config
	client     client.Client
	namespace  string
	reconciler *LolcowReconciler
	events     *events.FakeRecorder
	clock      *testclock.FakeClock
}

func newTestEnv(t *testing.T) *testEnv {
	t.Helper()
	config := rest.CopyConfig(apiServer(t).env.Config)
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: apiServer(t).mapper})
	if err != nil {
		t.Fatal(err)
	}
	f := &testEnv{
		WithT:  NewWithT(t),
		ctx:    ctrl.LoggerInto(t.Context(), testr.New(t)),
		config: config,
		client: c,
		events: events.NewFakeRecorder(100),
		clock:  testclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "lolcow-"}}
	f.Expect(c.Create(f.ctx, namespace)).To(Succeed())
	f.namespace = namespace.Name
	f.reconciler = f.newReconciler(c)
	return f
}

func (f *testEnv) newReconciler(c client.Client) *LolcowReconciler {
	return NewLolcowReconciler(c, f.events, f.clock, serverImage)
}

func (f *testEnv) lolcow(name string, spec v1alpha1.LolcowSpec) *v1alpha1.Lolcow {
	return &v1alpha1.Lolcow{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace}, Spec: spec}
}

// create creates a Lolcow and reconciles it once.
func (f *testEnv) create(name string, spec v1alpha1.LolcowSpec) *v1alpha1.Lolcow {
	lolcow := f.lolcow(name, spec)
	f.Expect(f.client.Create(f.ctx, lolcow)).To(Succeed())
	f.reconcile(name)
	return f.get(name)
}

// change changes the spec of the Lolcow "cow" and reconciles once.
func (f *testEnv) change(mutate func(*v1alpha1.LolcowSpec)) *v1alpha1.Lolcow {
	lolcow := f.get("cow")
	mutate(&lolcow.Spec)
	f.Expect(f.client.Update(f.ctx, lolcow)).To(Succeed())
	f.reconcile("cow")
	return f.get("cow")
}

func (f *testEnv) reconcile(name string) ctrl.Result {
	result, err := f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: f.key(name)})
	f.Expect(err).NotTo(HaveOccurred())
	return result
}

func (f *testEnv) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: f.namespace, Name: name}
}

func (f *testEnv) get(name string) *v1alpha1.Lolcow {
	var lolcow v1alpha1.Lolcow
	f.Expect(f.client.Get(f.ctx, f.key(name), &lolcow)).To(Succeed())
	return &lolcow
}

// deployment returns the Deployment of the Lolcow "cow".
func (f *testEnv) deployment() *appsv1.Deployment {
	var deployment appsv1.Deployment
	f.Expect(f.client.Get(f.ctx, f.key("cow"), &deployment)).To(Succeed())
	return &deployment
}

// service returns the Service of the Lolcow "cow".
func (f *testEnv) service() *corev1.Service {
	var service corev1.Service
	f.Expect(f.client.Get(f.ctx, f.key("cow"), &service)).To(Succeed())
	return &service
}

// rollOut simulates the Deployment controller and the kubelets: all replicas are updated and available.
func (f *testEnv) rollOut(name string) {
	rollOut(f.ctx, f.WithT, f.client, f.key(name))
}

func rollOut(ctx context.Context, g *WithT, c client.Client, key client.ObjectKey) {
	var deployment appsv1.Deployment
	g.Expect(c.Get(ctx, key, &deployment)).To(Succeed())
	replicas := ptr.Deref(deployment.Spec.Replicas, 1)
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation,
		Replicas:           replicas,
		UpdatedReplicas:    replicas,
		ReadyReplicas:      replicas,
		AvailableReplicas:  replicas,
	}
	g.Expect(c.Status().Update(ctx, &deployment)).To(Succeed())
}

// recorded returns the Events recorded since the last call.
func (f *testEnv) recorded() []string {
	var all []string
	for {
		select {
		case one := <-f.events.Events:
			all = append(all, one)
		default:
			return all
		}
	}
}

func readyOf(lolcow *v1alpha1.Lolcow) metav1.Condition {
	return conditionOf(lolcow.Status.Conditions, v1alpha1.ConditionReady)
}

// expectReady asserts status and reason of the condition Ready, and that it is about the current generation.
func (f *testEnv) expectReady(lolcow *v1alpha1.Lolcow, status metav1.ConditionStatus, reason string) metav1.Condition {
	ready := readyOf(lolcow)
	f.Expect(ready.Status).To(Equal(status), ready.Message)
	f.Expect(ready.Reason).To(Equal(reason), ready.Message)
	f.Expect(ready.ObservedGeneration).To(Equal(lolcow.Generation))
	f.Expect(lolcow.Status.ObservedGeneration).To(Equal(lolcow.Generation))
	return ready
}

// auditPolicy records who changed what, and nothing else.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`
