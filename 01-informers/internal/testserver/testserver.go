// Package testserver gives the tests of a package a real etcd and API server. The controllers of Kubernetes
// do not run there, so a test simulates the ones it needs.
package testserver

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// kubernetesVersion is the version that envtest downloads if KUBEBUILDER_ASSETS is not set.
const kubernetesVersion = "v1.37.0"

// A busy machine needs more than the second that Gomega waits by default. A TestMain may set another time.
func init() { gomega.SetDefaultEventuallyTimeout(10 * time.Second) }

// Main runs the tests of a package and stops the server if they started it:
//
//	func TestMain(m *testing.M) { testserver.Main(m) }
func Main(m *testing.M) {
	code := m.Run()
	stop()
	os.Exit(code)
}

var stop = func() {}

// start starts the server on its first call.
var start = sync.OnceValues(func() (*envtest.Environment, error) {
	environment, err := newEnvironment()
	if err != nil {
		// A port that was free may have been taken before the API server listened: a second server has other ports.
		stop()
		environment, err = newEnvironment()
	}
	return environment, err
})

func newEnvironment() (*envtest.Environment, error) {
	dir, err := os.MkdirTemp("", "informers-envtest-")
	if err != nil {
		return nil, err
	}
	environment := &envtest.Environment{
		UseExistingCluster:          new(false), // whatever USE_EXISTING_CLUSTER is
		CRDDirectoryPaths:           []string{crds()},
		DownloadBinaryAssets:        os.Getenv("KUBEBUILDER_ASSETS") == "",
		DownloadBinaryAssetsVersion: kubernetesVersion,
	}
	stop = func() {
		if err := environment.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the API server:", err)
		}
		_ = os.RemoveAll(dir)
	}
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	auditLog = filepath.Join(dir, "audit.log")
	environment.ControlPlane.GetAPIServer().Configure().
		Set("audit-policy-file", policy).
		Set("audit-log-path", auditLog).
		Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	if _, err := environment.Start(); err != nil {
		return nil, fmt.Errorf("starting the API server (make test says where its programs are, in KUBEBUILDER_ASSETS): %w", err)
	}
	return environment, nil
}

var auditLog string

// auditPolicy logs writes only, with their metadata.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`

// crds returns the folder of this stage's CRDs, independent of the working directory.
func crds() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "config", "crd", "bases")
}

// started returns the server.
func started(tb testing.TB) *envtest.Environment {
	tb.Helper()
	environment, err := start()
	expectNo(tb, err)
	return environment
}

// expectNo ends the test if there is an error.
func expectNo(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// Config returns an administrator's access to the server, without client-side rate limiting.
func Config(tb testing.TB) *rest.Config {
	tb.Helper()
	config := rest.CopyConfig(started(tb).Config)
	config.QPS = -1
	return config
}

// FreeAddress returns an address on which no process listens.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	expectNo(tb, err)
	defer listener.Close()
	return listener.Addr().String()
}

// AuditLog returns the path of the audit log, which has one JSON object a line for each write.
func AuditLog(tb testing.TB) string {
	tb.Helper()
	started(tb)
	return auditLog
}

// Client returns a typed client for the server.
func Client(tb testing.TB) kubernetes.Interface {
	tb.Helper()
	client, err := kubernetes.NewForConfig(Config(tb))
	expectNo(tb, err)
	return client
}

// Namespace creates a namespace for one test, and returns its name.
func Namespace(tb testing.TB) string {
	tb.Helper()
	namespace, err := Client(tb).CoreV1().Namespaces().Create(tb.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
	}, metav1.CreateOptions{})
	expectNo(tb, err)
	return namespace.Name
}
