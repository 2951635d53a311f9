package proc

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/process"
)

// patience is how long a test waits for what takes milliseconds on an idle machine.
const patience = 30 * time.Second

// start runs a process that lasts until it is ended, and describes it.
func start(t *testing.T) Process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	go func() { _ = cmd.Wait() }()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		if p, err := process.NewProcess(int32(cmd.Process.Pid)); err == nil {
			// Between fork and exec it has our own name.
			if d, err := describe(t.Context(), p); err == nil && d.Name == "sleep" {
				return d
			}
		}
	}
	t.Fatal("sleep did not appear in the process table")
	return Process{}
}

func TestAliveMeansExactlyThisProcess(t *testing.T) {
	p := start(t)
	if !p.Alive(t.Context()) {
		t.Fatal("a running process is reported as gone")
	}
	other := p
	other.Name = "etcd"
	if other.Alive(t.Context()) {
		t.Error("a process of another name with the same pid is taken for ours")
	}
	other = p
	other.Start--
	if other.Alive(t.Context()) {
		t.Error("a process that started at another time with the same pid is taken for ours")
	}
}

func TestEndLeavesOthersAlone(t *testing.T) {
	ours, others := start(t), start(t)
	reused := others
	reused.Start -= 6000 // what a state file says whose pid now belongs to another process

	var out bytes.Buffer
	if err := End(t.Context(), &out, []Process{ours, reused}, patience); err != nil {
		t.Fatal(err)
	}
	if ours.Alive(t.Context()) {
		t.Error("our process still runs")
	}
	if !others.Alive(t.Context()) {
		t.Error("a process that only shares the pid was ended")
	}
}

func TestNamingFindsWhatWorksInAFolder(t *testing.T) {
	dir := t.TempDir()
	of := func(args ...string) int32 {
		// The shell waits for its input and takes any argument.
		cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", "read line", "sh"}, args...)...)
		if _, err := cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return int32(cmd.Process.Pid)
	}
	want := []int32{of(dir + "/run/etcd"), of("--kubeconfig=" + dir + "/kubeconfig"), of("-v", "--dir="+dir+"/gone/x")}
	of(dir + "-2/run/etcd")
	of("--flag=text about " + dir + "/run")

	var got []int32
	for _, p := range Naming(t.Context(), dir) {
		got = append(got, p.PID)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestEndKillsWhatDoesNotListen(t *testing.T) {
	p := start(t)
	// A stopped process does not act on SIGTERM, only on SIGKILL.
	if err := syscall.Kill(int(p.PID), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	waitStopped(t, p)
	var out bytes.Buffer
	if err := End(t.Context(), &out, []Process{p}, 300*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if p.Alive(t.Context()) {
		t.Error("the process still runs")
	}
	if !strings.Contains(out.String(), "killing it") {
		t.Errorf("nothing was said about the killing: %q", out.String())
	}
}

func waitStopped(t *testing.T, p Process) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		found, err := process.NewProcess(p.PID)
		if err != nil {
			t.Fatal(err)
		}
		if status, err := found.Status(); err == nil && slices.Contains(status, process.Stop) {
			return
		}
	}
	t.Fatal("the process did not stop")
}
