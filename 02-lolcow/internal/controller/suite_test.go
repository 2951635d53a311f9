package controller

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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

// server is a real etcd and API server, shared by the tests of this package: each has a namespace of
// its own. No controller of Kubernetes runs, so the tests play the ones they need.
type server struct {
	env      *envtest.Environment
	auditLog string
}

// startServer starts it when the first test asks for it: the unit tests need none.
var startServer = sync.OnceValues(func() (*server, error) {
	dir, err := os.MkdirTemp("", "lolcow-envtest-")
	if err != nil {
		return nil, err
	}
	stopServer = func() { _ = os.RemoveAll(dir) }
	s := &server{auditLog: filepath.Join(dir, "audit.log"), env: &envtest.Environment{
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
		// Where it is the CRDs that it does not take, it runs all the same.
		_ = s.env.Stop()
		return nil, fmt.Errorf("starting the API server: %w", err)
	}
	stopServer = func() {
		if err := s.env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the API server:", err)
		}
		_ = os.RemoveAll(dir)
	}
	return s, nil
})

var stopServer = func() {}

func TestMain(m *testing.M) {
	// Each test logs to itself; what has no test is not worth reading.
	ctrl.SetLogger(logr.Discard())
	code := m.Run()
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

// world is one test's namespace on the API server, and a reconciler that the test calls itself.
type world struct {
	*WithT
	ctx        context.Context
	config     *rest.Config
	client     client.Client
	namespace  string
	reconciler *LolcowReconciler
	events     *events.FakeRecorder
	clock      *testclock.FakeClock
}

func newWorld(t *testing.T) *world {
	t.Helper()
	config := rest.CopyConfig(apiServer(t).env.Config)
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		WithT:  NewWithT(t),
		ctx:    ctrl.LoggerInto(t.Context(), testr.New(t)),
		config: config,
		client: c,
		events: events.NewFakeRecorder(100),
		clock:  testclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "lolcow-"}}
	w.Expect(c.Create(w.ctx, namespace)).To(Succeed())
	w.namespace = namespace.Name
	w.reconciler = w.newReconciler(c)
	return w
}

func (w *world) newReconciler(c client.Client) *LolcowReconciler {
	return NewLolcowReconciler(c, w.events, w.clock, serverImage)
}

func (w *world) lolcow(name string, spec v1alpha1.LolcowSpec) *v1alpha1.Lolcow {
	return &v1alpha1.Lolcow{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}, Spec: spec}
}

// create creates a Lolcow and reconciles it once.
func (w *world) create(name string, spec v1alpha1.LolcowSpec) *v1alpha1.Lolcow {
	lolcow := w.lolcow(name, spec)
	w.Expect(w.client.Create(w.ctx, lolcow)).To(Succeed())
	w.reconcile(name)
	return w.get(name)
}

// change changes the spec of the Lolcow "cow" and reconciles once.
func (w *world) change(mutate func(*v1alpha1.LolcowSpec)) *v1alpha1.Lolcow {
	lolcow := w.get("cow")
	mutate(&lolcow.Spec)
	w.Expect(w.client.Update(w.ctx, lolcow)).To(Succeed())
	w.reconcile("cow")
	return w.get("cow")
}

func (w *world) reconcile(name string) ctrl.Result {
	result, err := w.reconciler.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key(name)})
	w.Expect(err).NotTo(HaveOccurred())
	return result
}

func (w *world) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: w.namespace, Name: name}
}

func (w *world) get(name string) *v1alpha1.Lolcow {
	var lolcow v1alpha1.Lolcow
	w.Expect(w.client.Get(w.ctx, w.key(name), &lolcow)).To(Succeed())
	return &lolcow
}

// deployment is that of the Lolcow "cow".
func (w *world) deployment() *appsv1.Deployment {
	var deployment appsv1.Deployment
	w.Expect(w.client.Get(w.ctx, w.key("cow"), &deployment)).To(Succeed())
	return &deployment
}

// service is that of the Lolcow "cow".
func (w *world) service() *corev1.Service {
	var service corev1.Service
	w.Expect(w.client.Get(w.ctx, w.key("cow"), &service)).To(Succeed())
	return &service
}

// rollOut plays the Deployment controller and the kubelets: all replicas are updated and available.
func (w *world) rollOut(name string) {
	rollOut(w.ctx, w.WithT, w.client, w.key(name))
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
func (w *world) recorded() []string {
	var all []string
	for {
		select {
		case one := <-w.events.Events:
			all = append(all, one)
		default:
			return all
		}
	}
}

func readyOf(lolcow *v1alpha1.Lolcow) metav1.Condition {
	return conditionOf(lolcow.Status.Conditions, v1alpha1.ConditionReady)
}

// expectReady asserts status and reason of the condition Ready, and that it speaks of the present spec.
func (w *world) expectReady(lolcow *v1alpha1.Lolcow, status metav1.ConditionStatus, reason string) metav1.Condition {
	ready := readyOf(lolcow)
	w.Expect(ready.Status).To(Equal(status), ready.Message)
	w.Expect(ready.Reason).To(Equal(reason), ready.Message)
	w.Expect(ready.ObservedGeneration).To(Equal(lolcow.Generation))
	w.Expect(lolcow.Status.ObservedGeneration).To(Equal(lolcow.Generation))
	return ready
}

// auditPolicy keeps who changed what, and nothing else.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`
