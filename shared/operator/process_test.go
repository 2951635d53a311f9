package operator

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/workbook/shared/cluster"
	"example.com/workbook/shared/proc"
)

// fakeOperator is ready at once, says what it was told, and ends on SIGTERM.
const fakeOperator = `package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	probes := flag.String("health-probe-bind-address", "", "")
	metrics := flag.String("metrics-bind-address", "", "")
	kubeconfig := flag.String("kubeconfig", "", "")
	broken := flag.Bool("broken", false, "")
	flag.Parse()
	fmt.Println("started", *metrics, *kubeconfig, os.Getenv("GREETING"))
	if *broken {
		fmt.Println("no tea left")
		os.Exit(1)
	}
	http.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	go http.ListenAndServe(*probes, nil)
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	<-end
	fmt.Println("ended in order")
}
`

type fakeCluster struct{ cluster.Cluster }

func (fakeCluster) Context() string { return "fake" }

// newProcess builds the fake operator and returns a handle for it that was not started.
func newProcess(t *testing.T, args ...string) *Process {
	t.Helper()
	t.Setenv("HARNESS_CACHE", t.TempDir())
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte(fakeOperator), 0o644); err != nil {
		t.Fatal(err)
	}
	p := &Process{
		options:    Options{Cluster: fakeCluster{}, Log: filepath.Join(dir, "logs", "operator.log"), Args: args},
		manifest:   testManifest(t),
		binary:     filepath.Join(dir, "operator"),
		kubeconfig: "the-kubeconfig",
		login:      func(_ context.Context, kubeconfig string) (string, error) { return "token of " + kubeconfig, nil },
		help:       "-kubeconfig -health-probe-bind-address -metrics-bind-address",
	}
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", p.binary, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if err := p.endLeftover(t.Context(), t.Output(), "teapot"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = end(context.Background(), p.replicas, syscall.SIGKILL) })
	return p
}

func logs(t *testing.T, p *Process) string {
	t.Helper()
	text, err := p.Logs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestProcessLivesAndDies(t *testing.T) {
	p := newProcess(t)
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The manifest's metrics address is replaced by one of this machine, its environment is kept.
	if text := logs(t, p); !strings.Contains(text, "started 127.0.0.1:") || !strings.Contains(text, "the-kubeconfig server room") {
		t.Errorf("the operator was not told what it needs: %s", text)
	}

	first := p.Pid()
	if err := p.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.Pid() == first {
		t.Error("Kill did not start another process")
	}
	if strings.Contains(logs(t, p), "ended in order") {
		t.Error("Kill ended the operator in order")
	}
	if err := p.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(logs(t, p), "ended in order"); got != 1 {
		t.Errorf("Restart ended the operator in order %d times, want once", got)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Ended():
	default:
		t.Error("the operator runs after Stop")
	}
	if got := strings.Count(logs(t, p), "started"); got != 3 {
		t.Errorf("the log has %d runs, want all 3", got)
	}
}

func TestProcessScales(t *testing.T) {
	p := newProcess(t)
	if err := p.Scale(t.Context(), 0); err == nil {
		t.Error("it was scaled to 0, which is Stop's to do")
	}
	if err := p.Scale(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	first, second := p.replicas[0], p.replicas[1]
	if first.probePort == second.probePort || first.metricsPort == second.metricsPort || first.log == second.log || first.credential == second.credential {
		t.Errorf("the replicas share what each needs for itself: %+v, %+v", first, second)
	}
	text := logs(t, p)
	for _, want := range []string{"==> operator.log <==\nstarted", "==> operator-2.log <==\nstarted", "the-kubeconfig.2 "} {
		if !strings.Contains(text, want) {
			t.Errorf("the logs lack %q: %s", want, text)
		}
	}

	if err := p.Scale(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if second.running() || !first.running() {
		t.Error("scaling down did not end the last replica, and only that")
	}
}

func TestProcessStartsAndRestartsAllReplicas(t *testing.T) {
	p := newProcess(t)
	if err := p.Scale(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	first, second := p.replicas[0], p.replicas[1]
	if err := first.end(t.Context(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	kept := second.cmd.Process.Pid
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !first.running() || second.cmd.Process.Pid != kept {
		t.Error("Start did not start the one that was gone, and only that")
	}
	if err := p.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(logs(t, p), "ended in order"); got != 2 {
		t.Errorf("Restart ended %d replicas in order, want 2", got)
	}
}

func TestWithCredential(t *testing.T) {
	p := newProcess(t)
	if err := p.Scale(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if got := p.withCredential("token of the-kubeconfig.2"); got != p.replicas[1] {
		t.Errorf("got %+v, want the second replica", got)
	}
	if got := p.withCredential("token of another user"); got != nil {
		t.Errorf("got %+v, want nothing", got)
	}
	if err := p.replicas[1].end(t.Context(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := p.withCredential("token of the-kubeconfig.2"); got != nil {
		t.Errorf("a process that is gone was taken for the leader: %+v", got)
	}
}

func TestProcessThatEndsAtOnceShowsItsLog(t *testing.T) {
	p := newProcess(t, "--broken")
	began := time.Now()
	err := p.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no tea left") {
		t.Errorf("got error %v, want the end of the log", err)
	}
	if took := time.Since(began); took > readyTimeout/2 {
		t.Errorf("a process that was gone was waited for: %s", took)
	}
}

func TestLeftoversAreEnded(t *testing.T) {
	p := newProcess(t)
	if err := p.Scale(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	var left []proc.Process
	for _, r := range p.replicas {
		process, err := proc.Of(t.Context(), r.cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, process)
	}
	// As another run would: with a handle of its own.
	other := &Process{options: p.options}
	var said strings.Builder
	if err := other.endLeftover(t.Context(), &said, "teapot"); err != nil {
		t.Fatal(err)
	}
	for _, process := range left {
		if process.Alive(t.Context()) {
			t.Error("the operator of another run still writes")
		}
	}
	if got := strings.Count(said.String(), "was killed"); got != 2 {
		t.Errorf("it was not said what was found: %q", said.String())
	}
	said.Reset()
	if err := other.endLeftover(t.Context(), &said, "teapot"); err != nil || said.Len() > 0 {
		t.Errorf("an operator that is gone was found again: %v, %q", err, said.String())
	}
}

// A machine that loses its power, or a full disk, may keep the name of a record and not its text.
func TestARecordThatCannotBeReadIsNone(t *testing.T) {
	p := newProcess(t)
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	record := p.replicas[0].record
	text, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	for _, broken := range []string{"", string(text[:len(text)/2]), "null"} {
		if err := os.WriteFile(record, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		other := &Process{options: p.options}
		if err := other.endLeftover(t.Context(), t.Output(), "teapot"); err != nil {
			t.Errorf("%q: %v", broken, err)
		}
	}
	// The next one replaces it as a whole.
	if err := os.Link(record, record+".old"); err != nil {
		t.Fatal(err)
	}
	if err := p.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if old, err := os.ReadFile(record + ".old"); err != nil || string(old) != "null" {
		t.Errorf("a record was written in place: %q, %v", old, err)
	}
}
