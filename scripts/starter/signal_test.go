package main

import (
	"os"
	"os/exec"
	"os/signal"
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
	// Under nohup this process ignores the signal, and so would its children.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	defer signal.Stop(caught)
	for _, before := range []string{"", "trap '' HUP; "} {
		repo := newRepo(t)
		put(t, filepath.Join(repo, "03-flux", "Makefile"), "HARNESS ?= ..\ngenerate manifests:\n\t@[ -e begun ] || { touch begun at-work; while [ -e at-work ]; do sleep 0.1; done; }\n")
		o := optionsFor(repo)
		parent := filepath.Dir(o.Dest)
		if err := os.MkdirAll(parent, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", before+`exec "$0"`, program)
		cmd.Dir = repo
		cmd.Env = append(os.Environ(), "STAGE="+o.Stage, "DEST="+o.Dest, "MODULE="+o.Module, "DOMAIN="+o.Domain, "KIND="+o.Kind)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		atWork := waitForFile(t, filepath.Join(parent, ".*", "at-work"))
		// A terminal signals the whole group.
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		ignored := before != ""
		if ignored {
			if err := os.Remove(atWork); err != nil {
				t.Fatal(err)
			}
		}
		err := cmd.Wait()
		left, _ := os.ReadDir(parent)
		if (err == nil) != ignored || len(left) > 0 != ignored {
			t.Errorf("%q: got %v, left %v", before, err, left)
		}
	}
}

// waitForFile returns the file that a pattern matches, as soon as there is one.
func waitForFile(t *testing.T, pattern string) string {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[0]
		}
	}
	t.Fatal("there is no file ", pattern)
	return ""
}
