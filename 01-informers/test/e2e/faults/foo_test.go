package faults

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"example.com/workbook/01-informers/internal/conformance/inprocess"
	"example.com/workbook/01-informers/internal/connect"
	"example.com/workbook/shared/faults/wire"
)

// resources are what an operator watches: Foos, as JSON, and Deployments, as protobuf.
const resources = 2

// fooWrites is the most writes of an operator for two Foos in a window without a fault: for each of two changes the
// Deployment and a status, and for the first change an Event. One status may have a conflict and be written again.
const fooWrites = 2*(1+2+1) + 2

// writeFaults are the ways in which a write can fail, and the most requests in a window.
var writeFaults = []struct {
	rule     wire.Rule
	requests int
}{
	// client-go retries each second (rest/with_retry.go), within one reconciliation of each of the two Foos.
	{rule: wire.Rule{Fault: wire.TooManyRequests, RetryAfter: time.Second, Verb: "patch"}, requests: 2*(1+int(window/time.Second)) + fooWrites},
	// The queue retries after 5 ms, 10 ms and so on (foo.FirstRetry): 10 attempts take 2.6 s, 11 take 5.1 s. Each watch
	// event of a Foo triggers one more. If the Deployment cannot be applied, the status that reports it is the second
	// request of an attempt.
	{rule: wire.Rule{Fault: wire.InternalError, Verb: "patch"}, requests: 2*2*10 + fooWrites},
	{rule: wire.Rule{Fault: wire.InternalError, Verb: "patch", Resource: "deployments"}, requests: 2*(10+2) + fooWrites},
	{rule: wire.Rule{Fault: wire.InternalError, Verb: "patch", Resource: "foos/status"}, requests: 2*10 + fooWrites},
}

// TestFoo injects each fault into the requests of both implementations, from the start and while they run, and changes
// Foos meanwhile. Afterwards the Foos have their desired state, and there were no more requests than expected.
func TestFoo(t *testing.T) {
	t.Parallel()
	for _, implementation := range inprocess.Names() {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			account := inprocess.NewAccount(t)
			for _, live := range []bool{true, false} {
				for _, fault := range watchFaults {
					rule := fault.rule
					rule.Verb = "watch"
					rule.Times *= resources
					t.Run(fmt.Sprintf("watch: %s, live=%t", rule, live), func(t *testing.T) {
						t.Parallel()
						inject(newEnv(t, implementation, account), rule, live, resources*fault.requests+fooWrites)
					})
				}
				for _, fault := range writeFaults {
					t.Run(fmt.Sprintf("%s %s: %s, live=%t", fault.rule.Verb, fault.rule.Resource, fault.rule, live), func(t *testing.T) {
						t.Parallel()
						inject(newEnv(t, implementation, account), fault.rule, live, fault.requests)
					})
				}
			}
		})
	}
}

// atStart is the most requests of an operator that starts without a fault: a list and a watch for each resource, and those
// for discovery.
const atStart = 2*resources + 6

func inject(e *testEnv, rule wire.Rule, live bool, requests int) {
	e.t.Helper()
	proxy := newProxy(e.t)
	start := func() {
		if rule.Fault == wire.Hang {
			e.start(withIdleWatch(proxy))
		} else {
			e.start(guarded(proxy))
		}
	}

	e.create("first", 1)
	if live {
		start()
		e.expectRollingOut("first")
		e.rollOut("first")
	}
	before, began := len(proxy.Requests()), time.Now()
	injection := proxy.Inject(rule)
	if !live {
		start()
		requests += atStart
	}
	e.scale("first", 3)
	e.create("second", 2)
	e.Eventually(injection.Count).WithPolling(time.Millisecond).Should(BeNumerically(">", 0))
	end := began.Add(window) // not from now on: a busy machine may have been late
	<-time.After(time.Until(end))
	seen := proxy.Requests()[before:].Before(end)
	e.Expect(len(seen)).To(BeNumerically("<=", requests), "%v", seen)

	injection.Stop()
	stopped := time.Now()
	e.expectRollingOut("first")
	e.expectRollingOut("second")
	took := time.Since(stopped)
	e.rollOut("first")
	e.rollOut("second")
	e.expectState(map[string]int32{"first": 3, "second": 2})
	e.t.Logf("%s: %s %s: %s, live=%t, for %s: %v; at most %d; converged %.1f s after", e.implementation,
		rule.Verb, rule.Resource, rule, live, window, seen, requests, took.Seconds())
}

// guarded routes an operator through a proxy, with the limits on watches that internal/operator sets.
func guarded(proxy *wire.Proxy) func(*rest.Config) {
	return func(config *rest.Config) {
		proxy.Route(config)
		connect.GuardWatches(config)
	}
}

// withIdleWatch is guarded, but a watch that hangs ends after a second.
func withIdleWatch(proxy *wire.Proxy) func(*rest.Config) {
	return func(config *rest.Config) {
		proxy.Route(config)
		config.Wrap(connect.IdleWatch(idle))
		connect.GuardWatches(config)
	}
}

// TestFooWithoutEvents asserts that an Event is best effort: the API server rejects each one, it is sent once, and the Foo
// becomes Ready.
func TestFooWithoutEvents(t *testing.T) {
	t.Parallel()
	for _, implementation := range inprocess.Names() {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, implementation, inprocess.NewAccount(t))
			proxy := newProxy(t)
			injection := proxy.Inject(wire.Rule{Fault: wire.InternalError, Verb: "create", Resource: "events"})
			running := e.start(guarded(proxy))
			e.create("first", 1)
			for replicas := range int32(3) {
				e.scale("first", 1+replicas)
				e.expectRollingOut("first")
				e.rollOut("first")
			}
			e.expectState(map[string]int32{"first": 3})
			running.Stop(t) // it waits until the Events are sent
			e.Expect(injection.Count()).To(Equal(3), "one each time that it becomes Ready")
			t.Logf("%s: %v", implementation, proxy.Requests())
		})
	}
}
