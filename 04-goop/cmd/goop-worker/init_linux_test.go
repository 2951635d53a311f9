package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// As process 1, a worker becomes the parent of orphaned processes, and has to wait for them.
func TestAsProcess1(t *testing.T) {
	p := newPlace(t)
	// Each ( … & ) leaves an orphaned process that ends at once.
	cmd := p.command(t, "--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do (true &); (true &); (true &); done; echo $$ orphaned; until [ -e "+p.dir+"/end ]; do sleep .05; done; exit 9")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWPID | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	probe := p.command(t, "--help")
	probe.SysProcAttr = cmd.SysProcAttr
	if err := probe.Run(); err != nil {
		t.Skipf("a PID namespace cannot be created on this machine: %v", err)
	}
	if line := started(t, cmd); !strings.HasSuffix(line, "orphaned") || len(line) > len("999 orphaned") {
		t.Errorf("the command wrote %q: it has no PID namespace of its own", line)
	}
	// One that has just ended is a zombie for a moment.
	for deadline := time.Now().Add(patience); len(zombiesOf(t, cmd.Process.Pid)) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("the worker did not wait for %q", zombiesOf(t, cmd.Process.Pid))
			break
		}
	}
	if err := os.WriteFile(filepath.Join(p.dir, "end"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if record := p.record(t); record.ExitCode != 9 || record.Tries != 1 {
		t.Errorf("got %+v", record)
	}
}

// zombiesOf returns the child processes of a process that have ended and were not waited for.
func zombiesOf(t *testing.T, parent int) []string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var zombies []string
	for _, path := range stats {
		text, _ := os.ReadFile(path) // it may have ended meanwhile
		_, state, _ := strings.Cut(string(text), ") ")
		if strings.HasPrefix(state, fmt.Sprintf("Z %d ", parent)) {
			zombies = append(zombies, path)
		}
	}
	return zombies
}
