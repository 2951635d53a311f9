package cluster

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/workbook/shared/config"
	"example.com/workbook/shared/proc"
)

// currentContext is where kubectl goes after `make env`.
func currentContext(t *testing.T, repo string) string {
	t.Helper()
	c, err := clientcmd.LoadFromFile(filepath.Join(repo, ".kube", "config"))
	if err != nil {
		t.Fatal(err)
	}
	return c.CurrentContext
}

func ready(http.ResponseWriter, *http.Request) {}

// answering lays out an embedded cluster, of which all that runs is a server that is asked whether it is ready.
func answering(t *testing.T, name string, says http.HandlerFunc) {
	t.Helper()
	server := httptest.NewServer(says)
	t.Cleanup(server.Close)
	l, err := embeddedLayout(name)
	if err != nil {
		t.Fatal(err)
	}
	owner, ownerErr := proc.Of(t.Context(), os.Getpid())
	hash, hashErr := embeddedHash()
	if err := errors.Join(ownerErr, hashErr, os.MkdirAll(l.dir, 0o700), l.write(&state{Hash: hash, Owner: owner, Ready: true}),
		clientcmd.WriteToFile(*kubeconfigFor(ContextName(KindEmbedded, name), &rest.Config{Host: server.URL}), l.kubeconfig())); err != nil {
		t.Fatal(err)
	}
}

// The doctor and each choice between two clusters look for clusters that are up. kubectl stays where it is.
func TestOnlyEnsureMovesKubectl(t *testing.T) {
	repo := inRepository(t)
	t.Setenv("HARNESS_CACHE", t.TempDir())
	answering(t, "a", ready)
	if _, err := Find(t.Context(), Options{Kind: KindEmbedded, Name: "a"}); err != nil {
		t.Fatal(err)
	}
	if got := currentContext(t, repo); got != "embedded-a" {
		t.Errorf("with no other cluster, kubectl goes to %q, want embedded-a", got)
	}
	answering(t, "b", ready)
	if _, err := Find(t.Context(), Options{Kind: KindEmbedded, Name: "b"}); err != nil {
		t.Fatal(err)
	}
	if got := currentContext(t, repo); got != "embedded-a" {
		t.Errorf("after a look at another cluster, kubectl goes to %q, want embedded-a", got)
	}
	c, created, err := Ensure(t.Context(), t.Output(), Options{Kind: KindEmbedded, Name: "b"})
	if err != nil || created {
		t.Fatal(created, err)
	}
	if got := currentContext(t, repo); got != c.Context() {
		t.Errorf("after `make cluster`, kubectl goes to %q, want %q", got, c.Context())
	}
}

// Where kubectl goes when its cluster ends is no matter of chance.
func TestTheEndOfAClusterLeavesKubectlAtTheProjects(t *testing.T) {
	kind, embedded := ContextName(KindKind, config.Project()), ContextName(KindEmbedded, config.Project())
	for _, row := range []struct {
		left []string
		want string
	}{
		{[]string{"embedded-a", embedded, kind, "kind-z"}, kind},
		{[]string{"embedded-a", embedded, "kind-z"}, embedded},
		{[]string{"kind-z", "kind-c", "kind-b"}, "kind-b"},
		{nil, ""},
	} {
		for range 10 {
			repo := inRepository(t)
			for _, name := range slices.Concat(row.left, []string{"embedded-temporary"}) {
				if _, err := addContext(kubeconfigFor(name, &rest.Config{Host: "https://example.com"}), true); err != nil {
					t.Fatal(err)
				}
			}
			if err := removeContext("embedded-temporary"); err != nil {
				t.Fatal(err)
			}
			if got := currentContext(t, repo); got != row.want {
				t.Errorf("of %q kubectl goes to %q, want %q", row.left, got, row.want)
				break
			}
		}
	}
}

// A user who interrupts a command because the API server is slow wants neither another cluster nor the end of this one.
func TestAnInterruptedLookLeavesTheClusterAsItIs(t *testing.T) {
	inRepository(t)
	t.Setenv("HARNESS_CACHE", t.TempDir())
	ctx, interrupt := context.WithCancel(t.Context())
	answering(t, "a", func(_ http.ResponseWriter, request *http.Request) {
		interrupt()
		<-request.Context().Done()
	})
	l, err := embeddedLayout("a")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if _, _, err := Ensure(ctx, &out, Options{Kind: KindEmbedded, Name: "a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if s, err := l.read(); err != nil || s == nil {
		t.Errorf("the cluster was ended: %s", &out)
	}
}
