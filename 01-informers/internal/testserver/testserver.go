// Package testserver gives the tests of a package a real etcd and API server. No controller of Kubernetes
// runs there, so a test plays the ones it needs.
package testserver

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// kubernetesVersion is what envtest downloads where KUBEBUILDER_ASSETS names no binaries.
const kubernetesVersion = "v1.37.0"

// Main runs the tests of a package and ends the server that they may have started:
//
//	func TestMain(m *testing.M) { testserver.Main(m) }
func Main(m *testing.M) {
	code := m.Run()
	stop()
	os.Exit(code)
}

var stop = func() {}

// start starts the server when the first test asks for it.
var start = sync.OnceValues(func() (*envtest.Environment, error) {
	dir, err := os.MkdirTemp("", "informers-envtest-")
	if err != nil {
		return nil, err
	}
	stop = func() { _ = os.RemoveAll(dir) }
	environment := &envtest.Environment{
		CRDDirectoryPaths:           []string{crds()},
		DownloadBinaryAssets:        os.Getenv("KUBEBUILDER_ASSETS") == "",
		DownloadBinaryAssetsVersion: kubernetesVersion,
	}
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	environment.ControlPlane.GetAPIServer().Configure().
		Set("audit-policy-file", policy).
		Set("audit-log-path", filepath.Join(dir, "audit.log")).
		Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	auditLog = filepath.Join(dir, "audit.log")
	if _, err := environment.Start(); err != nil {
		return nil, fmt.Errorf("starting the API server (make test says where its programs are, in KUBEBUILDER_ASSETS): %w", err)
	}
	stop = func() {
		if err := environment.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the API server:", err)
		}
		_ = os.RemoveAll(dir)
	}
	return environment, nil
})

var auditLog string

// auditPolicy keeps who changed what, and nothing else.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`

// crds is the folder of this stage's CRDs, wherever the test runs.
func crds() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "config", "crd", "bases")
}

// Config returns an administrator's access to the server, without a limit on requests.
func Config(tb testing.TB) *rest.Config {
	tb.Helper()
	environment, err := start()
	if err != nil {
		tb.Fatal(err)
	}
	config := rest.CopyConfig(environment.Config)
	config.QPS = -1
	return config
}

// Environment returns the server itself, for tests that add users to it.
func Environment(tb testing.TB) *envtest.Environment {
	tb.Helper()
	Config(tb)
	environment, _ := start()
	return environment
}

// User returns the access of a user who has no right but those that every user has, such as to ask which
// rights they have. A test gives it more by binding roles to that name.
func User(tb testing.TB, name string) *rest.Config {
	tb.Helper()
	user, err := Environment(tb).AddUser(envtest.User{Name: name}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return user.Config()
}

// Kubeconfig writes config to a kubeconfig file, which goes when the test ends, and returns its name.
func Kubeconfig(tb testing.TB, config *rest.Config) string {
	tb.Helper()
	const name = "test"
	file := filepath.Join(tb.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: name,
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server:                   config.Host,
			CertificateAuthorityData: config.CAData,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {
			ClientCertificateData: config.CertData,
			ClientKeyData:         config.KeyData,
			Token:                 config.BearerToken,
		}},
	}, file)
	if err != nil {
		tb.Fatal(err)
	}
	return file
}

// AuditLog is the file that the server notes every write in, one JSON object a line.
func AuditLog(tb testing.TB) string {
	tb.Helper()
	Config(tb)
	return auditLog
}

// Client returns a typed client for the server.
func Client(tb testing.TB) kubernetes.Interface {
	tb.Helper()
	client, err := kubernetes.NewForConfig(Config(tb))
	if err != nil {
		tb.Fatal(err)
	}
	return client
}

// Namespace makes a namespace for one test.
func Namespace(tb testing.TB) string {
	tb.Helper()
	namespace, err := Client(tb).CoreV1().Namespaces().Create(tb.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
	}, metav1.CreateOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return namespace.Name
}
