package operator

import (
	"os"
	"path/filepath"
	"testing"

	"example.com/workbook/shared/cluster"
)

type inContext struct {
	cluster.Cluster
	context string
}

func (c inContext) Context() string { return c.context }

// A run on another cluster, in the same checkout, must not lead this one's next process there.
func TestRunsOnTwoClustersHaveTheirOwnKubeconfigs(t *testing.T) {
	repo := t.TempDir()
	files := map[string]bool{}
	for _, context := range []string{"embedded-a", "embedded-b", "kind-a", "default/api-example:6443/admin"} {
		// A second run on a cluster finds what the first has left.
		for range 2 {
			p := &Process{options: Options{Cluster: inContext{context: context}}}
			if err := p.placeKubeconfig(repo, "05-teapot"); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p.kubeconfig, []byte(context), 0o600); err != nil {
				t.Fatal(err)
			}
			files[p.kubeconfig] = true
			// This is how the chapters name it.
			text, err := os.ReadFile(filepath.Join(repo, ".kube", "operator-05-teapot"))
			if err != nil || string(text) != context {
				t.Errorf("the last run's kubeconfig is of %q, %v, want %s", text, err, context)
			}
		}
	}
	if len(files) != 4 {
		t.Errorf("four clusters have the kubeconfigs %v", files)
	}

	// Earlier versions had a file there.
	link := filepath.Join(repo, ".kube", "operator-05-teapot")
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(link, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &Process{options: Options{Cluster: inContext{context: "kind-a"}}}
	if err := p.placeKubeconfig(repo, "05-teapot"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(link); err != nil || string(text) != "kind-a" {
		t.Errorf("got %q, %v", text, err)
	}
}
