package artifacts

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"example.com/workbook/shared/binaries"
	"example.com/workbook/shared/cluster"
)

// fakeCluster is an API server and an audit log.
type fakeCluster struct {
	cluster.Cluster
	cfg *rest.Config
}

func (f fakeCluster) RESTConfig() (*rest.Config, error) { return f.cfg, nil }
func (f fakeCluster) RunsContainers() bool              { return false }
func (f fakeCluster) AuditLog(context.Context) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("who did what\n")), nil
}

func TestDump(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	dir, err := binaries.Ensure(t.Context(), os.Stdout, "etcd", "kube-apiserver", "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	env := &envtest.Environment{UseExistingCluster: new(false), BinaryAssetsDirectory: dir}
	cfg, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	fill(t, cfg)

	into := t.TempDir()
	if err := Dump(t.Context(), fakeCluster{cfg: cfg}, into, "default", "no-such-namespace"); err != nil {
		t.Error(err)
	}
	for name, part := range map[string]string{
		"default/configmaps.yaml": "a: teapot",
		"default/events.txt":      "Warning Boiling ConfigMap/pot (1 times) it whistles",
		"audit.log":               "who did what",
	} {
		text, err := os.ReadFile(filepath.Join(into, name))
		if err != nil || !strings.Contains(string(text), part) {
			t.Errorf("%s: want %q, got %v: %s", name, part, err, text)
		}
	}
	err = fs.WalkDir(os.DirFS(into), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			text, readErr := os.ReadFile(filepath.Join(into, path))
			if readErr != nil || slices.Contains(strings.Fields(string(text)), "c2VjcmV0") {
				t.Errorf("%s has a secret in it, or cannot be read: %v", path, readErr)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// fill creates one object of each sort that a dump treats differently.
func fill(t *testing.T, cfg *rest.Config) {
	t.Helper()
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	core := clients.CoreV1()
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: "default"} }
	_, err = core.ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta("pot"), Data: map[string]string{"a": "teapot"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = core.Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: meta("recipe"), Data: map[string][]byte{"a": []byte("secret")}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = core.Events("default").Create(t.Context(), &corev1.Event{
		ObjectMeta: meta("whistle"), Type: "Warning", Reason: "Boiling", Message: "it whistles",
		InvolvedObject: corev1.ObjectReference{Kind: "ConfigMap", Name: "pot", Namespace: "default"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}
