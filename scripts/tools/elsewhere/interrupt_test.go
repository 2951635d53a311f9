package elsewhere

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// interruptible is a go command whose suite says that it runs, and ends in order when it is interrupted, as Ginkgo does.
const interruptible = `#!/bin/sh
case "$* " in *" ginkgo --procs="*) ;; *) exit 0 ;; esac
trap 'echo interrupted; exit 1' INT
echo "$@" >>"$RECORD"
i=0; while [ $i -lt 100 ]; do sleep 0.1; i=$((i + 1)); done
`

// within reports whether something is so before a time is over.
func within(limit time.Duration, is func() bool) bool {
	for deadline := time.Now().Add(limit); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// A shell that is told to end while a program runs goes on if that ends in order: bash does, which is sh on many systems.
func TestCtrlCEndsTheSuitesOfAllImplementations(t *testing.T) {
	if signal.Ignored(os.Interrupt) {
		t.Skip("as a job in the background of a script, nothing here can be interrupted")
	}
	dir := filepath.Join(t.TempDir(), "a copy")
	copyTo(t, dir, "shared/go.mod", "scripts/harness.mk", "01-informers/Makefile", "01-informers/test/e2e/go.mod")
	bin := t.TempDir()
	record := filepath.Join(bin, "record")
	if err := errors.Join(os.WriteFile(record, nil, 0o600), os.WriteFile(filepath.Join(bin, "go"), []byte(interruptible), 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, shell := range []string{"sh", "bash"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Log(err)
			continue
		}
		if err := os.Truncate(record, 0); err != nil {
			t.Fatal(err)
		}
		var output bytes.Buffer
		cmd := exec.CommandContext(t.Context(), "make", "e2e", "SHELL="+path)
		cmd.Dir = filepath.Join(dir, "01-informers")
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "RECORD="+record, "MAKEFLAGS=", "MAKELEVEL=", "HARNESS=..")
		cmd.Stdout, cmd.Stderr = &output, &output
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal interrupts all of the group
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		began := func() int {
			text, err := os.ReadFile(record)
			if err != nil {
				t.Fatal(err)
			}
			return strings.Count(string(text), "implementation=")
		}
		within(30*time.Second, func() bool { return began() > 0 })
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil || began() != 1 || !strings.Contains(output.String(), "interrupted") {
			t.Errorf("%s: got %v after %d suites, want the end of the first:\n%s", shell, err, began(), &output)
		}
	}
}

// puller is an engine that has no image and pulls for a long time.
const puller = `#!/bin/sh
case $1 in
version) exit 0 ;;
pull) echo $$ >>"$RECORD"; exec sleep 20 ;;
esac
exit 1
`

// timeout has what it runs in a process group of its own, which the terminal does not interrupt; and the harness
// interrupts the script alone.
func TestCtrlCEndsThePullOfTheNodeImage(t *testing.T) {
	if signal.Ignored(os.Interrupt) {
		t.Skip("as a job in the background of a script, nothing here can be interrupted")
	}
	dir := filepath.Join(t.TempDir(), "a copy")
	copyTo(t, dir, "scripts/node-image.sh", "scripts/node-image", "scripts/components", "shared/config/harness.env", "shared/go.mod")
	for name, all := range map[string]bool{"the group": true, "the script alone": false} {
		bin := t.TempDir()
		record := filepath.Join(bin, "record")
		if err := os.WriteFile(filepath.Join(bin, "docker"), []byte(puller), 0o700); err != nil {
			t.Fatal(err)
		}
		var output bytes.Buffer
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "scripts", "node-image.sh"))
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "RECORD="+record, "HARNESS_CACHE="+t.TempDir())
		cmd.Stdout, cmd.Stderr = &output, &output
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var pull int
		if !within(30*time.Second, func() bool {
			text, _ := os.ReadFile(record)
			pull, _ = strconv.Atoi(strings.TrimSpace(string(text)))
			return pull > 0
		}) {
			t.Fatalf("%s: nothing was pulled:\n%s", name, &output)
		}
		target := cmd.Process.Pid
		if all {
			target = -target
		}
		interrupted := time.Now()
		if err := syscall.Kill(target, syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		err := cmd.Wait()
		if took := time.Since(interrupted); err == nil || took > 30*time.Second || strings.Contains(output.String(), "is built instead") {
			t.Errorf("%s: got %v %s after Ctrl-C, want the end at once:\n%s", name, err, took, &output)
		}
		if !within(30*time.Second, func() bool { return syscall.Kill(pull, 0) != nil }) {
			t.Errorf("%s: the pull goes on", name)
		}
	}
}
