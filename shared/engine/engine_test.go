package engine

import (
	"context"
	"os"
	"os/exec"
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

func TestFindSaysWhatTheClientSays(t *testing.T) {
	for name, row := range map[string]struct {
		says string
		want error
	}{
		"the daemon is not up":         {"Cannot connect to the Docker daemon", ErrNone},
		"a file is for others":         {"Error loading config file: permission denied", ErrNone},
		"the daemon is not for anyone": {"Got permission denied while trying to connect to the Docker daemon socket", ErrDenied},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			clients(t, map[string]string{"docker": `echo "` + row.says + `" >&2; exit 1`})
			_, err := Find(t.Context())
			g.Expect(err).To(MatchError(row.want))
			g.Expect(err).To(MatchError(ContainSubstring("docker: " + row.says)))
		})
	}
}

// The script for `make engine` installs nothing where an engine is there for others.
func TestTheScriptSaysThatAnEngineIsForOthers(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	for name, script := range map[string]string{
		"docker": `echo "Got permission denied while trying to connect" >&2; exit 1`, "podman": "exit 1",
	} {
		g.Expect(os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755)).To(Succeed())
	}
	cmd := exec.CommandContext(t.Context(), "../../scripts/engine.sh")
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "DOCKER_HOST=unix:///nowhere")
	output, err := cmd.CombinedOutput()
	g.Expect(err).To(HaveOccurred())
	g.Expect(string(output)).To(And(ContainSubstring("usermod -aG docker"), ContainSubstring("Got permission denied")))
}

func TestFindEndsWithTheContext(t *testing.T) {
	g := NewWithT(t)
	clients(t, map[string]string{"docker": "while :; do :; done"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Find(ctx)
	g.Expect(err).To(MatchError(context.Canceled))
}
