package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

func writeContexts(t *testing.T, path, current string, names ...string) {
	t.Helper()
	c := api.NewConfig()
	for _, name := range names {
		c.Clusters[name] = &api.Cluster{Server: "https://" + name + ".example.com"}
		c.Contexts[name] = &api.Context{Cluster: name}
	}
	c.CurrentContext = current
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), clientcmd.WriteToFile(*c, path)); err != nil {
		t.Fatal(err)
	}
}

// KUBECONFIG is a list, whose first file wins, of paths that count from where make was called.
func TestKubeconfigIsReadAsKubectlReadsIt(t *testing.T) {
	const notMade = "which the harness did not make"
	repo, elsewhere := t.TempDir(), t.TempDir()
	own, other := filepath.Join(repo, ".kube", "config"), filepath.Join(elsewhere, "other")
	writeContexts(t, own, "kind-workbook", "kind-workbook")
	writeContexts(t, other, "production", "production")
	clash := filepath.Join(elsewhere, "clash")
	writeContexts(t, clash, "", "kind-workbook")
	broken := filepath.Join(elsewhere, "broken")
	link := filepath.Join(elsewhere, "link")
	if err := errors.Join(os.Symlink(own, link), os.WriteFile(broken, []byte("{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(t.TempDir(), ".kube", "config") // of a repository without a cluster
	freshLink := filepath.Join(elsewhere, "fresh")
	if err := os.Symlink(fresh, freshLink); err != nil {
		t.Fatal(err)
	}
	list := func(files ...string) string { return strings.Join(files, string(filepath.ListSeparator)) }

	for name, row := range map[string]struct {
		kubeconfig, caller, own string
		wantError               string // empty: our own
	}{
		"ours, then another":             {list(own, other), repo, own, ""},
		"ours, and nothing":              {list(own, ""), repo, own, ""},
		"nothing but separators":         {list("", ""), repo, own, "has no current context"},
		"a link to ours":                 {link, repo, own, ""},
		"a link to ours, not there yet":  {freshLink, repo, fresh, ""},
		"ours, not there yet":            {fresh, repo, fresh, ""},
		"ours not there yet, another":    {list(fresh, other), repo, fresh, `leads to context "production", ` + notMade},
		"from the repository":            {".kube/config", repo, own, ""},
		"from a folder of it":            {"../.kube/config", filepath.Join(repo, "02-lolcow"), own, ""},
		"from elsewhere":                 {"../.kube/config", repo, own, "cannot be read"},
		"another, then ours":             {list(other, own), repo, own, `leads to context "production", ` + notMade},
		"another of the same name first": {list(clash, own), repo, own, `leads to context "kind-workbook", ` + notMade},
		"no such file":                   {filepath.Join(elsewhere, "none"), repo, own, "no such file or directory"},
		"not a kubeconfig":               {broken, repo, own, "reading the kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HARNESS_CALLER", row.caller)
			got, err := target(row.kubeconfig, "", row.own)
			if got != nil {
				t.Fatalf("got the external cluster %s", got.Context())
			}
			if (err == nil) != (row.wantError == "") || err != nil && !strings.Contains(err.Error(), row.wantError) {
				t.Errorf("got error %v, want %q", err, row.wantError)
			}
		})
	}
}
