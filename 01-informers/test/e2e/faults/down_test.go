package faults

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/workbook/01-informers/internal/conformance/inprocess"
	"example.com/workbook/01-informers/internal/foo"
	"example.com/workbook/shared/faults/wire"
)

// TestAPIServerDown takes the API server away for half a minute, with -short for 5 seconds. Meanwhile one Foo changes,
// another is created, and the operator retries to apply the Deployment of a third. Afterwards all three have their
// desired state. None is Stalled, although the operator gives up after 3 rejections here: a connection error is not a
// rejection.
func TestAPIServerDown(t *testing.T) {
	t.Parallel()
	outage := 30 * time.Second
	if testing.Short() {
		outage = 5 * time.Second
	}
	for _, implementation := range inprocess.Names() {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, implementation, inprocess.NewAccount(t))
			proxy := newProxy(t)
			e.start(guarded(proxy))
			e.create("changed", 1)
			e.expectRollingOut("changed")
			e.rollOut("changed")

			injection := proxy.Inject(wire.Rule{Fault: wire.InternalError, Verb: "patch", Resource: "deployments"})
			e.create("retried", 2)
			e.Eventually(injection.Count).WithPolling(time.Millisecond).Should(BeNumerically(">", 0))
			began := time.Now()
			e.Expect(proxy.Down()).To(Succeed())
			injection.Stop()
			e.scale("changed", 3)
			e.create("new", 1)
			end := began.Add(outage)
			<-time.After(time.Until(end))
			seen := proxy.Requests().Since(began).Before(end)
			e.Expect(proxy.Listen()).To(Succeed())
			up := time.Now()

			// Most rounds of the reflectors are one request: Reflector.watchList and watch retry after "connection refused".
			reflectors := resources * perRound * attempts(800*time.Millisecond, outage)
			// The Deployment, and the status that reports that it could not be applied.
			queue := 2 * attempts(foo.FirstRetry, outage)
			// recordEvent in tools/events/event_broadcaster.go retries every 10 seconds.
			events := 1 + int(outage/(10*time.Second))
			e.Expect(seen.Of("patch", "deployments")).NotTo(BeEmpty(), "the Deployment was not retried")
			e.Expect(len(seen.Of("patch", ""))).To(BeNumerically("<=", queue), "%v", seen)
			e.Expect(len(seen)).To(BeNumerically("<=", reflectors+queue+events), "%v", seen)

			all := map[string]int32{"changed": 3, "retried": 2, "new": 1}
			for name := range all {
				e.expectRollingOut(name)
			}
			for name := range all {
				e.rollOut(name)
			}
			took := time.Since(up)
			e.expectState(all)
			t.Logf("%s: no connection for %s: %v; at most %d; all Ready %.1f s after", implementation, outage, seen,
				reflectors+queue+events, took.Seconds())
		})
	}
}

// attempts is how many attempts begin in d if the first begins at once and each wait is twice the one before.
func attempts(wait, d time.Duration) int {
	n := 1
	for at := wait; at <= d; at += wait {
		n++
		wait *= 2
	}
	return n
}

func TestAttempts(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.Expect(attempts(800*time.Millisecond, 500*time.Millisecond)).To(Equal(1))
	g.Expect(attempts(800*time.Millisecond, window)).To(Equal(rounds))
	g.Expect(attempts(800*time.Millisecond, 30*time.Second)).To(Equal(6))
	g.Expect(attempts(foo.FirstRetry, window)).To(Equal(10))
}
