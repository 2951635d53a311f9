package broker

import (
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Kubernetes sends TERM, or the stop signal of the image. The exit code depends on it, and is never 0.
var stopSignals = map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGHUP: 129, syscall.SIGINT: 130, syscall.SIGQUIT: 131}

func TestSignalBeforeTheBrokerIsStarted(t *testing.T) {
	onEachShell(t, func(t shell) {
		for signal, want := range stopSignals {
			c := t.newContainer(example(func(*Cluster) {}))
			c.env["INSTALL"] = "wait"
			c.start("command")
			c.await("installing")
			c.signal(signal)
			must(t, os.WriteFile(c.path("record", "go on"), nil, 0o644))
			c.expectEnd(want)
			if got := recorded[[]string](c, "broker"); got != nil {
				t.Errorf("after %v the broker was started all the same, with %q", signal, got)
			}
		}
	})
}

func TestSignalWhileTheBrokerRuns(t *testing.T) {
	onEachShell(t, func(t shell) {
		expect := func(signal syscall.Signal, want int, rank string) {
			t.Helper()
			c := t.newContainer(example(func(*Cluster) {}))
			c.env["BROKER"], c.env["JOB_COMPLETION_INDEX"] = "serve", rank
			c.start("command")
			c.awaitReady()
			c.signal(signal)
			c.expectEnd(want)
			if got := recorded[string](c, "signal"); got != syscall.SIGTERM.String() {
				t.Errorf("%v reached the broker of rank %s as %q", signal, rank, got)
			}
			if !recorded[bool](c, "ended") {
				t.Errorf("after %v the container of rank %s ended before its broker did", signal, rank)
			}
		}
		for signal, want := range stopSignals {
			expect(signal, want, "0")
		}
		expect(syscall.SIGTERM, 143, "1")
	})
}

// A broker that is starting ignores TERM: it is killed, and the exit code is the same.
func TestSignalBeforeTheBrokerIsReady(t *testing.T) {
	onEachShell(t, func(t shell) {
		for _, rank := range []string{"0", "1"} {
			c := t.newContainer(example(func(*Cluster) {}))
			c.env["BROKER"], c.env["JOB_COMPLETION_INDEX"] = "start", rank
			c.start("command")
			c.await("started")
			c.signal(syscall.SIGTERM)
			c.expectEnd(143)
		}
	})
}

func TestSecondSignal(t *testing.T) {
	onEachShell(t, func(t shell) {
		c := t.newContainer(example(func(*Cluster) {}))
		c.env["BROKER"] = "serve"
		c.start("command")
		c.awaitReady()
		c.signal(syscall.SIGTERM)
		c.await("signal")
		c.signal(syscall.SIGTERM)
		c.expectEnd(143)
		if !recorded[bool](c, "ended") {
			t.Error("the container ended before the broker did")
		}
	})
}

// Whenever TERM arrives: a shell that does not trap it yet dies of it, and one that does terminates the broker, which
// does not end by itself here.
func TestSignalAtAnyTime(t *testing.T) {
	onEachShell(t, func(t shell) {
		for moment := range 12 {
			c := t.newContainer(example(func(*Cluster) {}))
			c.env["BROKER"], c.env["JOB_COMPLETION_INDEX"] = "serve", strconv.Itoa(moment%2)
			c.start("command")
			<-time.After(time.Duration(3*moment) * time.Millisecond)
			c.signal(syscall.SIGTERM)
			if code := c.end(); code != 143 {
				t.Errorf("after %d ms the exit code is %d; standard error:\n%s", 3*moment, code, &c.stderr)
			}
			if pid := recorded[int](c, "pid"); pid != 0 && syscall.Kill(pid, 0) == nil {
				t.Errorf("after %d ms the broker still runs", 3*moment)
			}
		}
	})
}
