package cluster

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"example.com/workbook/shared/proc"
)

// component starts a program called etcd that works in a cluster's folder.
func component(t *testing.T, l layout) proc.Process {
	t.Helper()
	path := filepath.Join(t.TempDir(), "etcd")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nread line\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, "--data-dir="+filepath.Join(l.run(), "etcd"))
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		// Between fork and exec it has our own name.
		if p, err := proc.Of(t.Context(), cmd.Process.Pid); err == nil && p.Name == "etcd" {
			return p
		}
	}
	t.Fatal("etcd did not appear in the process table")
	return proc.Process{}
}

func TestDeleteEndsWhatNoStateNames(t *testing.T) {
	for name, prepare := range map[string]func(layout) error{
		"the folder is gone":       func(layout) error { return nil },
		"there is no state":        func(l layout) error { return os.MkdirAll(l.dir, 0o700) },
		"the state cannot be read": func(l layout) error { return writeState(l, "{") },
		"the state has an earlier form": func(l layout) error {
			return writeState(l, `{"processes": [{"name": "etcd", "pid": 1, "created": 1}]}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HARNESS_CACHE", t.TempDir())
			inRepository(t)
			l, err := embeddedLayout("test")
			if err != nil {
				t.Fatal(err)
			}
			other, err := embeddedLayout("test-2")
			if err != nil {
				t.Fatal(err)
			}
			if err := prepare(l); err != nil {
				t.Fatal(err)
			}
			ours, others := component(t, l), component(t, other)
			if err := deleteEmbedded(t.Context(), io.Discard, "test"); err != nil {
				t.Fatal(err)
			}
			if ours.Alive(t.Context()) {
				t.Error("a process of the cluster is left")
			}
			if !others.Alive(t.Context()) {
				t.Error("a process of another cluster was ended")
			}
		})
	}
}

func writeState(l layout, text string) error {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(l.state(), []byte(text), 0o600)
}

// What a supervisor that lost a process finds may be the cluster that another one has made meanwhile.
func TestASupervisorEndsOnlyItsOwnCluster(t *testing.T) {
	t.Setenv("HARNESS_CACHE", t.TempDir())
	inRepository(t)
	l, err := embeddedLayout("test")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	theirs := component(t, l)
	if err := l.write(&state{Owner: theirs, Processes: []proc.Process{theirs}}); err != nil {
		t.Fatal(err)
	}
	if err := endOwn(t.Context(), io.Discard, "test"); err != nil {
		t.Fatal(err)
	}
	if !theirs.Alive(t.Context()) {
		t.Error("a process of another supervisor's cluster was ended")
	}
}
