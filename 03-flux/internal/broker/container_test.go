package broker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// timeout is how long a test waits for what should happen at once.
const timeout = 30 * time.Second

// shell is a test that runs with one shell.
type shell struct {
	*testing.T
	command []string
}

// Run runs a subtest with the same shell.
func (s shell) Run(name string, test func(shell)) {
	s.T.Run(name, func(t *testing.T) { test(shell{t, s.command}) })
}

// onEachShell runs a test with the shells that images have as /bin/sh: those of Debian and of Alpine, and, if it is
// installed, that of Fedora.
func onEachShell(t *testing.T, test func(shell)) {
	t.Helper()
	t.Run("sh", func(t *testing.T) { test(shell{t, []string{"/bin/sh"}}) })
	t.Run("busybox", func(t *testing.T) {
		if _, err := exec.LookPath("busybox"); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatal("CI is set, and there is no busybox: install it, so that its shell is tested too")
			}
			t.Skip("there is no busybox in PATH, so that its shell is not tested")
		}
		test(shell{t, []string{"busybox", "sh"}})
	})
	t.Run("bash as sh", func(t *testing.T) {
		if _, err := exec.LookPath("bash"); err != nil {
			t.Skip("there is no bash in PATH, so that it is not tested")
		}
		test(shell{t, []string{"bash", "--posix"}})
	})
}

// container is a directory with the files of a container of the Job, including the entrypoint.
type container struct {
	t      shell
	root   string
	env    map[string]string
	cmd    *exec.Cmd
	stderr bytes.Buffer
}

// newContainer creates a container whose image contains Flux and install. Its rank is 0.
func (s shell) newContainer(cluster Cluster) *container {
	s.Helper()
	c := &container{t: s, root: s.TempDir()}
	for _, dir := range []string{"flux", "flux-config", "flux-secret", "bin", "record"} {
		must(s, os.Mkdir(c.path(dir), 0o755))
	}
	self, err := os.Executable()
	must(s, err)
	for _, program := range []string{"flux", "install", "command"} {
		must(s, os.Symlink(self, c.path("bin", program)))
	}
	install, err := exec.LookPath("install")
	must(s, err)
	must(s, os.WriteFile(c.path("flux-secret", CertificateFile), []byte("the certificate"), 0o644))
	must(s, os.WriteFile(c.path("flux-config", EntrypointFile), []byte(cluster.entrypoint(c.paths())), 0o644))
	c.env = map[string]string{
		"PATH":                 c.path("bin"),
		"JOB_COMPLETION_INDEX": "0",
		"HOSTNAME":             "hello-1-0",
		"HOME":                 "/somewhere",
		"RECORD":               c.path("record"),
		"READY":                c.path("flux", "ready"),
		"REAL_INSTALL":         install,
		"RC1":                  "flux rc1",
	}
	return c
}

func (c *container) path(parts ...string) string {
	return filepath.Join(append([]string{c.root}, parts...)...)
}

func (c *container) paths() paths {
	return paths{
		Dir: c.path("flux"), ConfigDir: c.path("flux-config"), SecretDir: c.path("flux-secret"),
		ReadyFile: c.path("flux", "ready"),
	}
}

// start starts the entrypoint as the kubelet does, with a command in the ConfigMap.
func (c *container) start(command ...string) {
	c.t.Helper()
	must(c.t, os.WriteFile(c.path("flux-config", CommandFile), []byte(Cluster{Argv: command}.Command()), 0o644))
	args := append(slices.Clone(c.t.command[1:]), c.path("flux-config", EntrypointFile))
	c.cmd = exec.CommandContext(c.t.Context(), c.t.command[0], args...)
	for name, value := range c.env {
		c.cmd.Env = append(c.cmd.Env, name+"="+value)
	}
	c.cmd.Stderr = &c.stderr
	c.cmd.WaitDelay = time.Second // for a process that is left and holds the standard error
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(c.t, c.cmd.Start())
	group := -c.cmd.Process.Pid
	c.t.Cleanup(func() { _ = syscall.Kill(group, syscall.SIGKILL) })
}

// end waits for the end of the entrypoint and returns its exit code, or 128 plus the signal that killed it.
func (c *container) end() int {
	c.t.Helper()
	ended := make(chan struct{})
	go func() {
		_ = c.cmd.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(timeout):
		c.t.Fatalf("the entrypoint does not end; its standard error:\n%s", &c.stderr)
	}
	if status, isUnix := c.cmd.ProcessState.Sys().(syscall.WaitStatus); isUnix && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return c.cmd.ProcessState.ExitCode()
}

// expectEnd waits for the end of the entrypoint. None of its processes may outlive it.
func (c *container) expectEnd(want int) {
	c.t.Helper()
	code := c.end()
	if c.isAlive() {
		c.t.Error("a process still runs")
	}
	if code != want {
		c.t.Errorf("the exit code is %d, want %d; standard error:\n%s", code, want, &c.stderr)
	}
}

// isAlive reports whether the entrypoint, or a process that it has started directly or indirectly, still runs. A process that
// has ended stays in its group until its parent has waited for it, which is process 1 if the entrypoint has not.
func (c *container) isAlive() bool {
	group := c.cmd.Process.Pid
	if errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) {
		return false
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	must(c.t, err)
	for _, file := range stats {
		stat, _ := os.ReadFile(file) // it may have ended meanwhile
		_, fields, _ := strings.Cut(string(stat), ") ")
		var state string
		var parent, itsGroup int
		if _, err := fmt.Sscan(fields, &state, &parent, &itsGroup); err == nil && itsGroup == group && state != "Z" && state != "X" {
			return true
		}
	}
	return len(stats) == 0 // a system without /proc
}

// signal sends a signal to the entrypoint only, as the container runtime does.
func (c *container) signal(signal syscall.Signal) {
	c.t.Helper()
	must(c.t, c.cmd.Process.Signal(signal))
}

// await waits until a program has recorded a file.
func (c *container) await(file string) {
	c.t.Helper()
	c.awaitThat(func() bool { return exists(c.path("record", file)) })
}

func (c *container) awaitReady() {
	c.t.Helper()
	c.awaitThat(func() bool { return exists(c.paths().ReadyFile) })
}

func (c *container) awaitThat(condition func() bool) {
	c.t.Helper()
	deadline := time.After(timeout)
	for !condition() {
		select {
		case <-deadline:
			c.t.Fatalf("the condition is not met; standard error:\n%s", &c.stderr)
		case <-time.After(time.Millisecond):
		}
	}
}

// recorded returns what a program has recorded, or the zero value if it has not.
func recorded[T any](c *container, file string) T {
	c.t.Helper()
	var value T
	content, err := os.ReadFile(c.path("record", file))
	if errors.Is(err, os.ErrNotExist) {
		return value
	}
	must(c.t, err)
	must(c.t, json.Unmarshal(content, &value))
	return value
}

// files lists the files in the broker's directory.
func (c *container) files() string {
	c.t.Helper()
	entries, err := os.ReadDir(c.path("flux"))
	must(c.t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return strings.Join(names, " ")
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
