package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// started waits until the command has written its first line, and returns it.
func started(t *testing.T, cmd *exec.Cmd) (line string) {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err = bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// gone waits until a process has ended.
func gone(t *testing.T, pid string) {
	t.Helper()
	number, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		status, _ := os.ReadFile("/proc/" + pid + "/stat")
		if errors.Is(syscall.Kill(number, 0), syscall.ESRCH) || strings.Contains(string(status), ") Z ") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %s still exists", pid)
		}
	}
}

func noRecord(t *testing.T, p place) {
	t.Helper()
	for _, path := range []string{p.message, filepath.Join(p.dir, "record")} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s exists: %v", path, err)
		}
	}
}

func TestSignals(t *testing.T) {
	t.Run("reach the command and its child processes, and leave no record", func(t *testing.T) {
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP} {
			p := newPlace(t)
			cmd := p.command(t, "--retries=3", "--", "sh", "-c", "trap 'echo notified >"+p.dir+"/notified; exit 0' TERM INT QUIT HUP; sleep 1000 & echo $!; wait")
			child := started(t, cmd)
			endBy(t, cmd, signal, 128+int(signal))
			if _, err := os.Stat(filepath.Join(p.dir, "notified")); err != nil {
				t.Errorf("%s: the command was not notified: %v", signal, err)
			}
			gone(t, child)
			noRecord(t, p)
		}
	})
	t.Run("a command that ignores them is killed", func(t *testing.T) {
		p := newPlace(t)
		cmd := p.command(t, "--retries=3", "--grace=200ms", "--", "sh", "-c", "trap '' TERM; echo $$; while :; do sleep 1000; done")
		pid := started(t, cmd)
		endBy(t, cmd, syscall.SIGTERM, 143)
		gone(t, pid)
		noRecord(t, p)
	})
	t.Run("end the pause between two tries", func(t *testing.T) {
		p := newPlace(t)
		cmd := p.command(t, "--retries=3", "--pause=1h", "--", "sh", "-c", "echo $$; exit 1")
		gone(t, started(t, cmd))
		time.Sleep(200 * time.Millisecond)
		endBy(t, cmd, syscall.SIGTERM, 143)
		noRecord(t, p)
	})
}

// Signals that do not request an end are forwarded to the command.
func TestOtherSignals(t *testing.T) {
	t.Run("reach the command and end nothing", func(t *testing.T) {
		p := newPlace(t)
		// The shell starts no process while signals arrive, because between fork and exec they would reach neither trap.
		// Processes that it has started before ignore them.
		cmd := p.command(t, "--", "sh", "-c", `trap '' USR1 USR2 WINCH; sleep 60 & trap 'echo USR1' USR1; trap 'echo USR2' USR2
			trap 'echo WINCH; kill $!; exit 6' WINCH; echo ready; while kill -0 $!; do wait $!; done`)
		output, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(output)
		signals := []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH}
		for i, want := range []string{"ready", "USR1", "USR2", "WINCH"} {
			if !lines.Scan() || lines.Text() != want {
				t.Fatalf("got %q, want %q: %v", lines.Text(), want, lines.Err())
			}
			if i < len(signals) {
				if err := cmd.Process.Signal(signals[i]); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		if record := p.record(t); record.ExitCode != 6 || record.Tries != 1 {
			t.Errorf("got %+v", record)
		}
	})
	t.Run("do not end the pause between two tries", func(t *testing.T) {
		p := newPlace(t)
		// The signal has to arrive within the pause: before it and after it the command would terminate by it.
		cmd := p.command(t, "--retries=1", "--pause=5s", "--", "sh", "-c", "echo $$; exit 1")
		gone(t, started(t, cmd))
		endBy(t, cmd, syscall.SIGUSR1, 0)
		if record := p.record(t); record.Tries != 2 {
			t.Errorf("got %+v", record)
		}
	})
	// An image may use any of them as its stop signal.
	t.Run("by which the command terminates leave no record", func(t *testing.T) {
		p := newPlace(t)
		cmd := p.command(t, "--retries=3", "--", "sh", "-c", "echo $$; exec sleep 1000")
		pid := started(t, cmd)
		endBy(t, cmd, syscall.SIGUSR1, 128+int(syscall.SIGUSR1))
		gone(t, pid)
		noRecord(t, p)
	})
	t.Run("do not end the pause of a pod", func(t *testing.T) {
		cmd := exec.CommandContext(t.Context(), program, "pause")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		awaitHandlers()
		for _, signal := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH} {
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
		}
		endBy(t, cmd, syscall.SIGHUP, 0)
	})
}

// Processes that a command leaves behind keep neither its worker nor the pipe.
func TestWhatACommandLeaves(t *testing.T) {
	for name, script := range map[string]string{
		"in its group":             "sleep 1000 & echo $!",
		"in its group, ignoring":   "(trap '' HUP TERM; sleep 1000) & echo $!",
		"in a session of its own":  "setsid sleep 1000 & echo $!",
		"that goes on writing":     "setsid yes & echo $!",
		"that writes now and then": "setsid sh -c 'while :; do echo y; sleep .3; done' & echo $!",
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			start := time.Now()
			got := finish(t, p.command(t, "--", "sh", "-c", script+"; sleep .2; exit 6"))
			if took := time.Since(start); got.code != 0 || took > patience {
				t.Errorf("got %d after %s", got.code, took)
			}
			if record := p.record(t); record.ExitCode != 6 {
				t.Errorf("got %+v", record)
			}
			pid := strings.TrimSpace(strings.ReplaceAll(got.stdout, "y\n", ""))
			if strings.Contains(script, "setsid") {
				// In a container it is killed with the container.
				if number, err := strconv.Atoi(pid); err != nil {
					t.Error(err)
				} else if err := syscall.Kill(number, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
					t.Error(err)
				}
			}
			gone(t, pid)
		})
	}
}

// The output is forwarded to a slow reader, also after the end of the command.
func TestASlowReader(t *testing.T) {
	p := newPlace(t)
	cmd := p.command(t, "--", "sh", "-c", "head -c 300000 /dev/zero")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1500 * time.Millisecond) // longer than the worker waits for a silent pipe
	total := int64(0)
	for {
		n, err := io.CopyN(io.Discard, stdout, 50000)
		total += n
		if err != nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err := cmd.Wait(); err != nil || total != 300000 {
		t.Errorf("got %d bytes, error %v", total, err)
	}
}

func TestOneGibibyteInBoundedMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("moves 1 GiB")
	}
	p := newPlace(t)
	cmd := p.command(t, "--", "sh", "-c", "head -c 1073741824 /dev/zero; printf end; sleep 1000")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	const size = 1<<30 + int64(len("end"))
	if _, err := io.CopyN(io.Discard, stdout, size); err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil {
		t.Skipf("its memory use cannot be read: %v", err)
	}
	_, text, _ := strings.Cut(string(status), "VmHWM:")
	peak := 0
	if _, err := fmt.Sscan(text, &peak); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes forwarded with at most %d KiB of memory", size, peak)
	if peak > 32<<10 {
		t.Errorf("it took %d KiB of memory", peak)
	}
	endBy(t, cmd, syscall.SIGTERM, 143)
}
