package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// The go command and tests write programs to TMPDIR and run them. Many machines have a folder where that cannot be.
func TestTheDoctorRunsAProgramInTMPDIR(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"/nowhere")
	if f := checkTemp(t.Context()); f.ok || !strings.Contains(f.cost, "set TMPDIR") {
		t.Errorf("a folder that is not there: got %+v", f)
	}
	t.Setenv("TMPDIR", t.TempDir())
	if f := checkTemp(t.Context()); !strings.Contains(f.has, "GiB free at ") {
		t.Errorf("got %+v", f)
	}
	for _, dir := range []string{"/dev/shm", "/run/lock", "/run"} {
		var fs syscall.Statfs_t
		const noExec = 0x8 // ST_NOEXEC
		if syscall.Statfs(dir, &fs) != nil || fs.Flags&noExec == 0 || syscall.Access(dir, 2) != nil {
			continue
		}
		t.Setenv("TMPDIR", dir)
		if f := checkTemp(t.Context()); f.ok || !strings.Contains(f.cost, "permission denied") || !strings.Contains(f.cost, "GOTMPDIR") {
			t.Errorf("%s is mounted with noexec: got %+v", dir, f)
		}
		if entries, _ := os.ReadDir(dir); strings.Contains(strings.Join(names(entries), " "), "doctor-") {
			t.Errorf("it left a file in %s", dir)
		}
		return
	}
	t.Log("no folder here is mounted with noexec")
}

func names(entries []os.DirEntry) (names []string) {
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}
