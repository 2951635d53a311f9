package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/config"
)

type named struct {
	cluster.Cluster
	name string
}

func (n named) Name() string       { return n.name }
func (n named) Kind() cluster.Kind { return cluster.KindEmbedded }

// Suites on clusters of different names run at the same time.
func TestSuitesOnTwoClustersKeepTheirOwnArtifacts(t *testing.T) {
	repo, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	marker := filepath.Join(repo, "shared", "config", "harness.env")
	if err := os.MkdirAll(filepath.Dir(marker), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(marker, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(repo)
	var kept []string
	for folder, env := range map[string]*Env{
		"embedded":               {Stage: Stage{Name: "05-teapot"}, Cluster: named{name: config.Project()}},
		"embedded-iced":          {Stage: Stage{Name: "05-teapot", Overlay: "iced"}, Cluster: named{name: config.Project()}},
		"embedded.iced":          {Stage: Stage{Name: "05-teapot"}, Cluster: named{name: "iced"}},
		"embedded-iced.my-other": {Stage: Stage{Name: "05-teapot", Overlay: "iced"}, Cluster: named{name: "my-other"}},
	} {
		if err := env.setupArtifacts(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := filepath.Join(repo, "_artifacts", "05-teapot", folder); env.Artifacts != want {
			t.Errorf("got %s, want %s", env.Artifacts, want)
		}
		kept = append(kept, env.Artifacts)
	}
	for _, dir := range kept {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("another suite removed it: %v", err)
		}
	}
}
