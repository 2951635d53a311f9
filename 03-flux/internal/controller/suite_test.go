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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"example.com/workbook/03-flux/api/v1alpha1"
)

// kubernetesVersion is what envtest downloads where KUBEBUILDER_ASSETS names no binaries.
const kubernetesVersion = "v1.37.0"

var scheme = runtime.NewScheme()

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
}

// server is a real etcd and API server, shared by the tests of this package: each has a namespace of
// its own. No controller of Kubernetes runs, so the tests simulate the ones they need.
type server struct {
	env      *envtest.Environment
	auditLog string

	// users is held while a user is added: envtest does not do that for several tests at once.
	users sync.Mutex
}

// addUser makes a user of this name known to the API server, and returns how to be that.
func (s *server) addUser(t *testing.T, name string) *rest.Config {
	t.Helper()
	s.users.Lock()
	defer s.users.Unlock()
	added, err := s.env.AddUser(envtest.User{Name: name}, nil)
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(added.Config())
	config.QPS = -1
	return config
}

// startServer starts it when the first test asks for it: the unit tests need none.
var startServer = sync.OnceValues(func() (*server, error) {
	dir, err := os.MkdirTemp("", "flux-envtest-")
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
		// A list out of the watch cache waits until the cache is known to be current: 20 ms, and these tests list often.
		Set("watch-cache-sizes", "pods#0").
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

// world is one test's namespace on the API server. A test calls Reconcile itself, and simulates the controllers of
// Kubernetes that it needs.
type world struct {
	*WithT
	ctx       context.Context
	config    *rest.Config
	client    client.Client
	namespace string
	events    *events.FakeRecorder
	clock     *testclock.FakeClock
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
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "flux-"}}
	w.Expect(c.Create(w.ctx, namespace)).To(Succeed())
	w.namespace = namespace.Name
	return w
}

func (w *world) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: w.namespace, Name: name}
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

// auditPolicy keeps who changed what, and nothing else.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`
