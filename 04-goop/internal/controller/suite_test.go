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
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// kubernetesVersion is the version that envtest downloads if KUBEBUILDER_ASSETS is not set.
const kubernetesVersion = "v1.37.0"

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
	dir, err := os.MkdirTemp("", "goop-envtest-")
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
		// A list from the watch cache waits until the cache is known to be current: 20 ms, and these tests list often.
		Set("watch-cache-sizes", "pods#0", "daemonsets.apps#0", "configmaps#0", "nodes#0").
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

// testEnv is one test's namespace on the API server. A test calls Reconcile itself, and simulates the controllers of
// Kubernetes that it needs.
type testEnv struct {
	*WithT
	ctx       context.Context
	config    *rest.Config
	client    client.Client
	namespace string
	events    *events.FakeRecorder
	clock     *testclock.FakeClock
}

func newTestEnv(t *testing.T) *testEnv {
	t.Helper()
	config := rest.CopyConfig(apiServer(t).env.Config)
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: apiServer(t).mapper})
	if err != nil {
		t.Fatal(err)
	}
	w := &testEnv{
		WithT:  NewWithT(t),
		ctx:    ctrl.LoggerInto(t.Context(), testr.New(t)),
		config: config,
		client: c,
		events: events.NewFakeRecorder(100),
		clock:  testclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "goop-"}}
	w.Expect(c.Create(w.ctx, namespace)).To(Succeed())
	w.namespace = namespace.Name
	return w
}

// key returns the key of the Goop of a test.
func (w *testEnv) key() client.ObjectKey {
	return client.ObjectKey{Namespace: w.namespace, Name: "job"}
}

// recorded returns the Events recorded since the last call.
func (w *testEnv) recorded() []string {
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

// auditPolicy records who changed what, and nothing else.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`
