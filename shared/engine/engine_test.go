package engine

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// clients puts fake engine clients, and nothing else, on PATH.
func clients(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

func TestFind(t *testing.T) {
	// Like the real client without a daemon: it knows its own version and fails on the server's.
	const noDaemon = `echo "Cannot connect to the Docker daemon" >&2; exit 1`
	for name, row := range map[string]struct {
		clients map[string]string
		want    string
	}{
		"docker answers":                 {map[string]string{"docker": "exit 0"}, "docker"},
		"both answer":                    {map[string]string{"docker": "exit 0", "podman": "exit 0"}, "docker"},
		"docker is only a client":        {map[string]string{"docker": noDaemon, "podman": "exit 0"}, "podman"},
		"only podman":                    {map[string]string{"podman": "exit 0"}, "podman"},
		"a docker client without engine": {map[string]string{"docker": noDaemon}, ""},
		"no client at all":               {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			clients(t, row.clients)
			found, err := Find(t.Context())
			if row.want == "" {
				g.Expect(err).To(MatchError(ErrNone))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.Name).To(Equal(row.want))
		})
	}
}

func TestErrNoneSaysWhatToDo(t *testing.T) {
	g := NewWithT(t)
	g.Expect(ErrNone.Error()).To(And(ContainSubstring("make engine"), ContainSubstring("CLUSTER=embedded")))
}

func TestFindEndsWithTheContext(t *testing.T) {
	g := NewWithT(t)
	clients(t, map[string]string{"docker": "while :; do :; done"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Find(ctx)
	g.Expect(err).To(MatchError(context.Canceled))
}
