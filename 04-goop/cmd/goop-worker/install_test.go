package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestInstallAlsoWhileTheCopyRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "worker")
	install := func(from string) {
		t.Helper()
		if got := finish(t, exec.CommandContext(t.Context(), from, "install", path)); got != (result{}) {
			t.Fatalf("got %+v", got)
		}
	}
	install(program)
	pause := exec.CommandContext(t.Context(), path, "pause")
	if err := pause.Start(); err != nil {
		t.Fatal(err)
	}
	install(program)
	install(path) // the copy can copy itself
	p := newPlace(t)
	if got := finish(t, exec.CommandContext(t.Context(), path, "--dir="+p.dir, "--termination-log="+p.message, "--", "echo", "hello")); got.stdout != "hello\n" {
		t.Errorf("got %+v", got)
	}
	want, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the copy has %d bytes, the program %d, error %v", len(got), len(want), err)
	}
	awaitHandlers()
	endBy(t, pause, syscall.SIGTERM, 0)
}

// awaitHandlers waits until a pause that was started has installed its signal handlers, which nothing reports.
func awaitHandlers() { time.Sleep(2 * time.Second) }

// endBy sends a signal to a worker, and expects an exit code.
func endBy(t *testing.T, cmd *exec.Cmd, signal syscall.Signal, code int) {
	t.Helper()
	if err := cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	// A worker that waits for something else than its end is killed, which is another exit code.
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("ended with %d, want %d", got, code)
	}
}

// Neither the worker nor the command ends when the reader of the output exits.
func TestTheReaderOfTheOutputExits(t *testing.T) {
	p := newPlace(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := p.command(t, "--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do echo line $i; echo line $i >&2; sleep .02; done; echo done >"+p.dir+"/done")
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(read, make([]byte, 7)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(read.Close(), write.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "done")); err != nil {
		t.Error(err)
	}
	if record := p.record(t); record.ExitCode != 0 || !strings.HasSuffix(record.Output, "line 9\nline 9\n") {
		t.Errorf("got %+v", record)
	}
}
