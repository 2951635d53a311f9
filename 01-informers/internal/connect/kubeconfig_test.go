package connect_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/workbook/01-informers/internal/connect"
)

// write writes a kubeconfig for host, with the folders above it.
func write(t *testing.T, file, host string) {
	t.Helper()
	config := clientcmdapi.Config{
		CurrentContext: "here",
		Contexts:       map[string]*clientcmdapi.Context{"here": {Cluster: "here"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"here": {Server: host}},
	}
	if err := clientcmd.WriteToFile(config, file); err != nil {
		t.Fatal(err)
	}
}

func TestConfigFindsTheWorkbooksOwn(t *testing.T) {
	for name, test := range map[string]struct {
		kubeconfig, marker, from, want string
	}{
		"in the folder":                       {".kube/config", "", ".", "https://found.example.com"},
		"above it":                            {".kube/config", "", "01-informers/listwatch", "https://found.example.com"},
		"at the root of the repository":       {"repo/.kube/config", "repo/.git", "repo/01-informers", "https://found.example.com"},
		"above the repository":                {".kube/config", "repo/.git", "repo/01-informers", ""},
		"above a workspace that is no clone":  {".kube/config", "repo/go.work", "repo/01-informers", ""},
		"nowhere":                             {"elsewhere/.kube/config", "", "01-informers", ""},
		"a worktree, where .git is no folder": {"repo/.kube/config", "repo/.git", "repo", "https://found.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			// A repository of its own: the search must not go above the folder of the test.
			root := t.TempDir()
			g.Expect(os.WriteFile(filepath.Join(root, "go.work"), nil, 0o600)).To(Succeed())
			write(t, filepath.Join(root, test.kubeconfig), "https://found.example.com")
			if test.marker != "" {
				g.Expect(os.MkdirAll(filepath.Dir(filepath.Join(root, test.marker)), 0o700)).To(Succeed())
				g.Expect(os.WriteFile(filepath.Join(root, test.marker), nil, 0o600)).To(Succeed())
			}
			g.Expect(os.MkdirAll(filepath.Join(root, test.from), 0o700)).To(Succeed())
			t.Chdir(filepath.Join(root, test.from))

			config, err := connect.Config("")
			if test.want == "" {
				g.Expect(err).To(MatchError(ContainSubstring("there is no cluster to work on")))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config.Host).To(Equal(test.want))
		})
	}
}

// A copy of this stage, from `make starter`, is no repository yet, and may be below the user's home folder.
func TestConfigIsNotTheUsersOwn(t *testing.T) {
	for name, home := range map[string]string{"their home": "home", "a link to it": "link"} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			root := t.TempDir()
			g.Expect(os.WriteFile(filepath.Join(root, "go.work"), nil, 0o600)).To(Succeed())
			g.Expect(os.MkdirAll(filepath.Join(root, "home", "operator"), 0o700)).To(Succeed())
			g.Expect(os.Symlink(filepath.Join(root, "home"), filepath.Join(root, "link"))).To(Succeed())
			t.Setenv("HOME", filepath.Join(root, home))
			write(t, filepath.Join(root, "home", ".kube", "config"), "https://own.example.com")
			t.Chdir(filepath.Join(root, "home", "operator"))
			_, err := connect.Config("")
			g.Expect(err).To(MatchError(ContainSubstring("there is no cluster to work on")))

			write(t, filepath.Join(root, "home", "operator", ".kube", "config"), "https://found.example.com")
			g.Expect(connect.Config("")).To(HaveField("Host", "https://found.example.com"))
		})
	}
}

// Programs that create and delete objects must not do it in a cluster that the user has not named.
func TestConfigNeverFallsBack(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(dir, "go.work"), nil, 0o600)).To(Succeed())
	t.Chdir(dir)
	own := filepath.Join(dir, "own")
	write(t, own, "https://own.example.com")
	t.Setenv("KUBECONFIG", own)
	t.Setenv("HOME", dir)
	t.Setenv("KUBERNETES_MASTER", "https://master.example.com")
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	_, err := connect.Config("")
	g.Expect(err).To(MatchError(ContainSubstring("there is no cluster to work on")))

	empty := filepath.Join(dir, "empty")
	g.Expect(os.WriteFile(empty, nil, 0o600)).To(Succeed())
	_, err = connect.Config(empty)
	g.Expect(err).To(MatchError("the kubeconfig " + empty + " names no cluster, or no current context"))
}

func TestConfigNamesTheFileThatItCannotUse(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		content, want string
	}{
		"no YAML":        {"a: [", "reading the kubeconfig "},
		"no context":     {"{current-context: ghost, clusters: [{name: b, cluster: {server: 'https://c'}}]}", "context was not found for specified context: ghost"},
		"no cluster":     {"{current-context: a, contexts: [{name: a, context: {cluster: ghost}}], clusters: [{name: b, cluster: {server: 'https://c'}}]}", "names no cluster"},
		"missing server": {"{current-context: a, contexts: [{name: a, context: {cluster: b}}], clusters: [{name: b, cluster: {}}]}", "no server found for cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			file := filepath.Join(t.TempDir(), "kubeconfig")
			g.Expect(os.WriteFile(file, []byte(test.content), 0o600)).To(Succeed())
			_, err := connect.Config(file)
			g.Expect(err).To(MatchError(And(ContainSubstring(file), ContainSubstring(test.want))))
		})
	}
}
