package cluster

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// A machine that loses its power, or a full disk, may leave half of a file.
func TestAKubeconfigThatCannotBeReadIsMovedAside(t *testing.T) {
	repo := inRepository(t)
	t.Setenv("HARNESS_CACHE", t.TempDir())
	path := filepath.Join(repo, ".kube", "config")
	const half = "apiVersion: v1\nclusters:\n- clus"
	if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(half), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := endEmbedded(t.Context(), io.Discard, "test"); err != nil {
		t.Errorf("a cluster cannot be ended: %v", err)
	}
	if kept, err := os.ReadFile(path + ".unreadable"); err != nil || string(kept) != half {
		t.Errorf("what was there was not kept: %q, %v", kept, err)
	}
	if err := os.WriteFile(path, []byte(half), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := addContext(kubeconfigFor("one", &rest.Config{Host: "https://example.com"}), true); err != nil {
		t.Fatal(err)
	}
	if c, err := clientcmd.LoadFromFile(path); err != nil || c.CurrentContext != "one" {
		t.Errorf("got %v, %v", c, err)
	}
}

// A cluster can be ended, which makes room, while there is no room to say who does.
func TestAFullDiskDoesNotKeepTheLock(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("HARNESS_CACHE", cache)
	path := filepath.Join(cache, "locks", "test")
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no full disk to write to")
	}
	if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o755), os.Symlink("/dev/full", path)); err != nil {
		t.Fatal(err)
	}
	unlock, err := Lock(t.Context(), io.Discard, "test", "delete")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

func TestTheAuditLogOfAPathWithBrackets(t *testing.T) {
	l := layout{filepath.Join(t.TempDir(), "x [3]")}
	dir := filepath.Dir(l.auditLog())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"audit.log": "new\n", "audit-2026-01-01T00-00-00.000.log": "old\n", "other.log": "other\n", "audit.txt": "other\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log, err := (&embedded{layout: l}).AuditLog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(log); err != nil || text.String() != "old\nnew\n" {
		t.Errorf("got %q, %v", text.String(), err)
	}
	if _, err := (&embedded{layout: layout{t.TempDir()}}).AuditLog(t.Context()); err == nil || !strings.Contains(err.Error(), "none in") {
		t.Errorf("without a log: got error %v", err)
	}
}

func TestAnEmbeddedClusterIsOfItsPrograms(t *testing.T) {
	t.Setenv("HARNESS_CACHE", t.TempDir())
	assets := t.TempDir()
	hashes := map[string]string{}
	note := func(what string) {
		t.Helper()
		got, err := embeddedHash()
		if err != nil {
			t.Fatal(err)
		}
		if other, taken := hashes[got]; taken {
			t.Errorf("clusters with the API server %q and %q are the same", what, other)
		}
		hashes[got] = what
	}
	t.Setenv("KUBEBUILDER_ASSETS", "")
	note("of the cache")
	t.Setenv("KUBEBUILDER_ASSETS", assets)
	if err := os.WriteFile(filepath.Join(assets, "kube-apiserver"), []byte("program"), 0o700); err != nil {
		t.Fatal(err)
	}
	note("of the user")
}
