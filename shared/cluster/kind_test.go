package cluster

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// fakeDocker is a docker on PATH that has the nodes of a kind cluster called test.
type fakeDocker struct {
	t    *testing.T
	dir  string
	repo string
}

// newFakeDocker has a complete cluster of the harness's own. Tests change the files that the program prints.
func newFakeDocker(t *testing.T) fakeDocker {
	t.Helper()
	t.Setenv("HARNESS_CACHE", t.TempDir())
	t.Setenv("CLUSTER", "")
	d := fakeDocker{t, t.TempDir(), inRepository(t)}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/readyz":
		case "/api/v1/namespaces/kube-system/configmaps/harness":
			_ = json.NewEncoder(w).Encode(newMarker("node:1"))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	host, port, _ := strings.Cut(server.Listener.Addr().String(), ":")
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	state, err := stateDir(KindKind, "test")
	if err != nil {
		t.Fatal(err)
	}
	d.write("names", "test-control-plane\ntest-worker\n")
	d.write("mounts", auditPolicyDir+" "+state+"/audit\n/var /var/lib/docker/volumes/x/_data\n")
	d.write("port", host+"\t"+port+"\n")
	d.write("admin.conf", `apiVersion: v1
kind: Config
clusters:
- {name: kubernetes, cluster: {server: "https://example.com", certificate-authority-data: `+ca+`}}
users:
- {name: admin, user: {token: secret}}
contexts:
- {name: admin, context: {cluster: kubernetes, user: admin}}
current-context: admin
`)
	d.write("docker", `#!/bin/sh
cd "${0%/*}" || exit 1
echo "$*" >>calls
test ! -f down || { cat down >&2; exit 1; }
case "$*" in
version*) ;;
ps*label=io.x-k8s.kind.cluster=test*) cat names ;;
ps*) test ! -s names || echo test ;;
inspect*.role*worker*) echo worker ;;
inspect*.role*) echo control-plane ;;
inspect*.Ports*) cat port ;;
inspect*desktop.docker.io*) echo ;;
inspect*.Mounts*) cat mounts ;;
exec*admin.conf) cat admin.conf ;;
rm*) : >names ;;
*) echo unexpected >&2; exit 1 ;;
esac
`)
	t.Setenv("PATH", d.dir+":"+os.Getenv("PATH"))
	return d
}

func (d fakeDocker) write(name, text string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o755); err != nil {
		d.t.Fatal(err)
	}
}

// made has the cluster's folder there, as after create began.
func (d fakeDocker) made() {
	d.t.Helper()
	if _, err := writeAuditPolicy("test"); err != nil {
		d.t.Fatal(err)
	}
}

// deleted reports whether containers were.
func (d fakeDocker) deleted() bool {
	d.t.Helper()
	calls, err := os.ReadFile(filepath.Join(d.dir, "calls"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		d.t.Fatal(err)
	}
	return strings.Contains("\n"+string(calls), "\nrm ")
}

func TestAHealthyKindClusterIsFound(t *testing.T) {
	d := newFakeDocker(t)
	if _, err := findKind(t.Context(), io.Discard, "test", func() (string, error) { return "node:1", nil }); err != nil {
		t.Fatal(err)
	}
	c, err := clientcmd.LoadFromFile(filepath.Join(d.repo, ".kube", "config"))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.AuthInfos["kind-test"]; c.CurrentContext != "kind-test" || got == nil || got.Token != "secret" {
		t.Errorf("the kubeconfig has the context %q, and its user is %v", c.CurrentContext, got)
	}
}

// kind's own lock is that a file exists: it outlives a kubectl that was killed.
func TestAStaleLockOnTheKubeconfigIsInNobodysWay(t *testing.T) {
	d := newFakeDocker(t)
	d.made()
	if err := errors.Join(os.Mkdir(".kube", 0o700), os.WriteFile(".kube/config.lock", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := findKind(t.Context(), io.Discard, "test", nil); err != nil {
		t.Errorf("a healthy cluster was not found: %v", err)
	}
	if err := Delete(t.Context(), io.Discard, "test"); err != nil || !d.deleted() {
		t.Errorf("the cluster was not deleted: %v", err)
	}
}

func TestAKubeconfigThatCannotBeWrittenCostsNoCluster(t *testing.T) {
	d := newFakeDocker(t)
	if err := os.WriteFile(".kube", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := ensureKind(t.Context(), io.Discard, Options{Name: "test"})
	if err == nil || !strings.Contains(err.Error(), ".kube") || errors.Is(err, ErrNotUp) {
		t.Errorf("got error %v, want one about the kubeconfig", err)
	}
	if d.deleted() {
		t.Error("a healthy cluster was deleted")
	}
}

// CLUSTER_NAME=kind is enough to meet a cluster of the user's own.
func TestAKindClusterOfSomebodyElseIsLeftAlone(t *testing.T) {
	for name, prepare := range map[string]func(fakeDocker){
		"it has no such mount":           func(d fakeDocker) { d.write("mounts", "/var /var/lib/docker/volumes/x/_data\n") },
		"ours was deleted behind us":     func(d fakeDocker) { d.write("mounts", ""); d.made() },
		"it has a mount of another kind": func(d fakeDocker) { d.write("mounts", auditPolicyDir+" /srv/audit\n") },
		"it has no control plane":        func(d fakeDocker) { d.write("mounts", ""); d.write("names", "test-worker\n") },
	} {
		t.Run(name, func(t *testing.T) {
			d := newFakeDocker(t)
			prepare(d)
			_, _, err := ensureKind(t.Context(), io.Discard, Options{Name: "test"})
			for what, err := range map[string]error{"Ensure": err, "Delete": Delete(t.Context(), io.Discard, "test")} {
				if err == nil || errors.Is(err, ErrNotUp) || !strings.Contains(err.Error(), "kind delete cluster --name test") {
					t.Errorf("%s: got error %v, want one that says what to do", what, err)
				}
			}
			if d.deleted() {
				t.Error("the cluster was deleted")
			}
		})
	}
}

func TestAHalfMadeKindClusterIsDeleted(t *testing.T) {
	for name, prepare := range map[string]func(fakeDocker){
		"without a kubeconfig": func(d fakeDocker) { d.write("admin.conf", "") },
		"that was being deleted": func(d fakeDocker) {
			d.made()
			state, err := stateDir(KindKind, "test")
			if err := errors.Join(err, os.WriteFile(filepath.Join(state, "kubeconfig.lock"), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		},
		"of another cache": func(d fakeDocker) { d.write("mounts", auditPolicyDir+" /a b/clusters/kind-test/audit\n") },
		"without a control plane": func(d fakeDocker) {
			d.write("mounts", "")
			d.write("names", "test-worker\n")
			d.made()
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFakeDocker(t)
			prepare(d)
			if err := Delete(t.Context(), io.Discard, "test"); err != nil || !d.deleted() {
				t.Errorf("the cluster was not deleted: %v", err)
			}
		})
	}
}

func TestDeleteEndsTheKindThatIsAskedFor(t *testing.T) {
	for wish, want := range map[string]struct{ kind, embedded bool }{
		"": {true, true}, "kind": {true, false}, "embedded": {false, true},
	} {
		t.Run(wish, func(t *testing.T) {
			d := newFakeDocker(t)
			t.Setenv("CLUSTER", wish)
			l, err := embeddedLayout("test")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(l.dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := Delete(t.Context(), io.Discard, "test"); err != nil {
				t.Fatal(err)
			}
			_, err = os.Stat(l.dir)
			if got := errors.Is(err, os.ErrNotExist); d.deleted() != want.kind || got != want.embedded {
				t.Errorf("kind was deleted: %t, embedded: %t, want %v", d.deleted(), got, want)
			}
		})
	}
	newFakeDocker(t)
	t.Setenv("CLUSTER", "k3s")
	if err := Delete(t.Context(), io.Discard, "test"); err == nil || !strings.Contains(err.Error(), "CLUSTER=k3s is unknown") {
		t.Errorf("got error %v, want one about the unknown kind", err)
	}
}

// Without an engine nothing of a cluster can be ended, nor seen.
func TestDeleteWithoutAnEngine(t *testing.T) {
	context := func(fakeDocker) {
		if err := errors.Join(os.Mkdir(".kube", 0o700), clientcmd.WriteToFile(*kubeconfigFor("kind-test", &rest.Config{}), ".kube/config")); err != nil {
			panic(err)
		}
	}
	for name, row := range map[string]struct {
		wish    string
		prepare func(fakeDocker)
		fails   bool
	}{
		"nothing was made":                 {"", func(fakeDocker) {}, false},
		"a kind cluster was made":          {"", fakeDocker.made, true},
		"a kind cluster was made, is said": {"", context, true},
		"a kind cluster is meant":          {"kind", func(fakeDocker) {}, true},
		"none is meant":                    {"embedded", fakeDocker.made, false},
	} {
		for _, says := range []string{"Cannot connect to the Docker daemon", "permission denied while trying to connect"} {
			t.Run(fmt.Sprintf("%s, %.6s", name, says), func(t *testing.T) {
				d := newFakeDocker(t)
				d.write("down", says)
				d.write("podman", "#!/bin/sh\nexit 1\n")
				t.Setenv("CLUSTER", row.wish)
				row.prepare(d)
				err := Delete(t.Context(), io.Discard, "test")
				if (err != nil) != row.fails || err != nil && !strings.Contains(err.Error(), says) {
					t.Errorf("got error %v, want one: %t", err, row.fails)
				}
			})
		}
	}
}
