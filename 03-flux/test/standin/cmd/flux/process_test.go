package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a running program.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr buffer
	ended          chan struct{}
}

// buffer is what a process has written.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// start starts the program, and kills it if the test ends first.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(t.Context(), program, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.cmd.Env = append(os.Environ(), "LC_ALL=C", "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"))
	p.cmd.WaitDelay = time.Second
	// Signals from the terminal are for the test only.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("%s\nprinted\n%s\nand on standard error\n%s", strings.Join(args, " "), &p.stdout, &p.stderr)
		}
	})
	return p
}

// signal sends a signal to the program.
func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatalf("sending %s: %v", s, err)
	}
}

// await waits until a stream of the program matches a regular expression.
func (p *process) await(t *testing.T, stream *buffer, pattern string) {
	t.Helper()
	matches := regexp.MustCompile("(?i)" + pattern)
	for timeout := time.After(patience); ; {
		over := isClosed(p.ended) // read first, so that the last output is not missed
		if matches.MatchString(stream.String()) {
			return
		}
		if over {
			t.Fatalf("the program ended with %v, and its output does not match %q", p.cmd.ProcessState, pattern)
		}
		select {
		case <-timeout:
			t.Fatalf("no output matched %q within %s", pattern, patience)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// expectExit waits for the end of the program; a signal that killed it is converted to an exit code as in a shell.
func (p *process) expectExit(t *testing.T, code int) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatalf("the program did not end within %s", patience)
	}
	got := p.cmd.ProcessState.ExitCode()
	if status := p.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		got = 128 + int(status.Signal())
	}
	if got != code {
		t.Errorf("exit code %d, want %d", got, code)
	}
}

// expectAlive asserts that the program does not end for a while.
func (p *process) expectAlive(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-p.ended:
		t.Errorf("the program ended with %v, want it to continue", p.cmd.ProcessState)
	case <-time.After(d):
	}
}
