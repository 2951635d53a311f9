package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// inRepository moves the test into an empty repository, so that the real one's kubeconfig is safe.
func inRepository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	marker := filepath.Join(dir, "shared", "config", "harness.env")
	if err := os.MkdirAll(filepath.Dir(marker), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(marker, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	return dir
}

func TestRemovedContextLeavesTheOthers(t *testing.T) {
	repo := inRepository(t)
	for _, name := range []string{"kind-a", "embedded-a"} {
		cfg := &rest.Config{Host: "https://" + name + ".example.com", BearerToken: "secret"}
		path, err := addContext(kubeconfigFor(name, cfg), true)
		if err != nil {
			t.Fatal(err)
		}
		if want := filepath.Join(repo, ".kube", "config"); path != want {
			t.Fatalf("the context went into %s, want %s", path, want)
		}
	}
	path := filepath.Join(repo, ".kube", "config")

	// Each context leads to its own cluster, whichever is the current one.
	cfg, err := restConfig(path, "kind-a")
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Host != "https://kind-a.example.com" || cfg.BearerToken != "secret" {
		t.Errorf("kind-a leads to %s", cfg.Host)
	}
	if err := removeContext("embedded-a"); err != nil {
		t.Fatal(err)
	}
	left, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(left.Contexts) != 1 || len(left.Clusters) != 1 || len(left.AuthInfos) != 1 || left.CurrentContext != "kind-a" {
		t.Errorf("after removing one of two: %d contexts, %d clusters, %d users, current %q",
			len(left.Contexts), len(left.Clusters), len(left.AuthInfos), left.CurrentContext)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig can be read by others: %v", info.Mode())
	}
}

// Processes that use clusters of different names hold different locks, but write the same kubeconfig.
func TestConcurrentWritersLoseNoContext(t *testing.T) {
	repo := inRepository(t)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			name := fmt.Sprintf("embedded-%d", i)
			if _, err := addContext(kubeconfigFor(name, &rest.Config{Host: "https://example.com"}), true); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	c, err := clientcmd.LoadFromFile(filepath.Join(repo, ".kube", "config"))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Contexts) != 20 {
		t.Errorf("%d of 20 contexts are there", len(c.Contexts))
	}
	// Its existence is a lock for kubectl and kind.
	if _, err := os.Stat(filepath.Join(repo, ".kube", "config.lock")); err == nil {
		t.Error("the kubeconfig is locked for kubectl and kind")
	}
}

// Processes of one suite find the cluster at the same time, and each adds its context again.
func TestReadersSeeAWholeKubeconfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	write := func() {
		if err := editKubeconfig(path, func(to *api.Config) { *to = *kubeconfigFor("one", &rest.Config{Host: "https://127.0.0.1:1"}) }); err != nil {
			t.Error(err)
		}
	}
	write()
	var writer sync.WaitGroup
	writer.Go(func() {
		for range 200 {
			write()
		}
	})
	for range 2000 {
		if _, err := restConfig(path, "one"); err != nil {
			t.Fatal(err)
		}
	}
	writer.Wait()
}
