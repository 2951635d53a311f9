package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A terminal that is closed ends the program as Ctrl-C does, and nothing is left beside DEST; nohup keeps it going.
func TestStarterEndsWithItsTerminal(t *testing.T) {
	program := filepath.Join(t.TempDir(), "starter")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	for _, before := range []string{"", "trap '' HUP; "} {
		repo := newRepo(t)
		put(t, filepath.Join(repo, "03-flux", "Makefile"), "HARNESS ?= ..\ngenerate manifests:\n\t@touch at-work; sleep 2\n")
		o := optionsFor(repo)
		parent := filepath.Dir(o.Dest)
		if err := os.MkdirAll(parent, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", before+`exec "$0"`, program)
		cmd.Dir = repo
		cmd.Env = append(os.Environ(), "STAGE="+o.Stage, "DEST="+o.Dest, "MODULE="+o.Module, "DOMAIN="+o.Domain, "KIND="+o.Kind)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			if found, _ := filepath.Glob(filepath.Join(parent, ".*", "at-work")); len(found) > 0 {
				break
			}
		}
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		err := cmd.Wait()
		left, _ := os.ReadDir(parent)
		if ignored := before != ""; (err == nil) != ignored || len(left) > 0 != ignored {
			t.Errorf("%q: got %v, left %v", before, err, left)
		}
	}
}
