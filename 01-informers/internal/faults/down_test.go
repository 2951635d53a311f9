package faults

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"example.com/workbook/01-informers/internal/conformance/inprocess"
	"example.com/workbook/01-informers/internal/foo"
	"example.com/workbook/01-informers/internal/testserver"
)

// TestServerDown has nobody listen for half a minute, with -short for 5 seconds. Meanwhile one Foo changes,
// another is created, and of a third the Deployment is due, and tried again and again. All three are as they
// should be afterwards. None is Stalled, although the operator gives up after 3 refusals here: no connection
// is no refusal.
func TestServerDown(t *testing.T) {
	t.Parallel()
	outage := 30 * time.Second
	if testing.Short() {
		outage = 5 * time.Second
	}
	for _, implementation := range inprocess.Names() {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, implementation, inprocess.NewAccount(t))
			server := newServer(t, testserver.Config(t))
			w.start(guarded(server))
			w.create("changed", 1)
			w.expectRollingOut("changed")
			w.rollOut("changed")

			failure := server.Fail(Rule{Fault: InternalError, Verb: "patch", Resource: "deployments"})
			w.create("due", 2)
			w.Eventually(failure.Struck).WithPolling(time.Millisecond).Should(BeNumerically(">", 0))
			began := time.Now()
			w.Expect(server.Refuse()).To(Succeed())
			failure.Lift()
			w.scale("changed", 3)
			w.create("new", 1)
			<-time.After(time.Until(began.Add(outage)))
			seen := server.Requests().Since(began)
			w.Expect(server.Accept()).To(Succeed())
			over := time.Now()

			// Most of the reflectors' rounds are one request: Reflector.watchList and watch try again what is refused.
			reflectors := resources * perRound * tries(800*time.Millisecond, outage)
			// The Deployment, and the status that says that it could not be applied.
			queue := 2 * tries(foo.FirstRetry, outage)
			// recordEvent in tools/events/event_broadcaster.go tries again every 10 seconds.
			events := 1 + int(outage/(10*time.Second))
			w.Expect(seen.Of("patch", "deployments")).NotTo(BeEmpty(), "it was not due")
			w.Expect(len(seen.Of("patch", ""))).To(BeNumerically("<=", queue), "%v", seen)
			w.Expect(len(seen)).To(BeNumerically("<=", reflectors+queue+events), "%v", seen)

			all := map[string]int32{"changed": 3, "due": 2, "new": 1}
			for name := range all {
				w.expectRollingOut(name)
			}
			for name := range all {
				w.rollOut(name)
			}
			// Of the two reflectors, the one that waits longer.
			took := time.Since(over)
			w.expectEnd(all)
			t.Logf("%s: refused for %s: %v; at most %d; all Ready %.1f s after", implementation, outage, seen,
				reflectors+queue+events, took.Seconds())
		})
	}
}

// TestStartWhereTheServerIsDown asserts that an operator that cannot begin says so and ends: what starts it
// again, and waits ever longer in between, is the kubelet.
func TestStartWhereTheServerIsDown(t *testing.T) {
	t.Parallel()
	for _, implementation := range inprocess.Names() {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, implementation, inprocess.NewAccount(t))
			server := newServer(t, testserver.Config(t))
			w.Expect(server.Refuse()).To(Succeed())
			err := w.start(guarded(server)).Wait()
			w.Expect(utilnet.IsConnectionRefused(err)).To(BeTrue(), "%v", err)
			w.Expect(len(server.Requests())).To(BeNumerically("<=", atStart))
			t.Logf("%s: %v: %v", implementation, server.Requests(), err)
		})
	}
}

// TestEndBeforeTheCachesAreFull asserts that an operator whose caches do not fill, as the API server does not
// answer, ends in order when it is told to, and without delay.
func TestEndBeforeTheCachesAreFull(t *testing.T) {
	t.Parallel()
	for _, implementation := range inprocess.Names() {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, implementation, inprocess.NewAccount(t))
			server := newServer(t, testserver.Config(t))
			failure := server.Fail(Rule{Fault: Hang, Verb: "watch"})
			running := w.start(guarded(server))
			w.Eventually(failure.Struck).Should(Equal(resources))
			told := time.Now()
			running.Cancel()
			w.Eventually(running.Done()).WithTimeout(30 * time.Second).Should(BeClosed())
			w.Expect(running.Wait()).To(Succeed())
			t.Logf("%s: ended %.1f s after it was told to", implementation, time.Since(told).Seconds())
		})
	}
}

// tries is how many begin in d where the first is at once and the waits between them double.
func tries(wait, d time.Duration) int {
	n := 1
	for at := wait; at <= d; at += wait {
		n++
		wait *= 2
	}
	return n
}

func TestTries(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.Expect(tries(800*time.Millisecond, 500*time.Millisecond)).To(Equal(1))
	g.Expect(tries(800*time.Millisecond, window)).To(Equal(rounds))
	g.Expect(tries(800*time.Millisecond, 30*time.Second)).To(Equal(6))
	g.Expect(tries(foo.FirstRetry, window)).To(Equal(10))
}
