package faults

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"example.com/workbook/01-informers/internal/conformance/inprocess"
	"example.com/workbook/01-informers/internal/connect"
	"example.com/workbook/01-informers/internal/testserver"
)

// resources are what an operator watches: Foos, as JSON, and Deployments, as protobuf.
const resources = 2

// fooWrites are what an operator writes for two Foos in a window in which nothing fails: for each of two
// changes the Deployment and a status, for the first of them an Event before that. One status may meet a
// Foo that has changed since, and be written again.
const fooWrites = 2*(1+2+1) + 2

// writeFaults are the ways in which a write can fail, and the requests that each may lead to in a window.
var writeFaults = []struct {
	rule     Rule
	requests int
}{
	// Tried again by client-go, each second (rest/with_retry.go), inside one pass over each of the two Foos.
	{rule: Rule{Fault: TooManyRequests, RetryAfter: time.Second, Verb: "patch"}, requests: 2*(1+int(window/time.Second)) + fooWrites},
	// Tried again by the queue after 5 ms, 10 ms and so on (foo.FirstRetry): 10 tries take 2.6 s, 11 take 5.1.
	// A Foo's own events trigger one try each besides. Where the Deployment cannot be applied, the status that says so
	// is the second request of a try.
	{rule: Rule{Fault: InternalError, Verb: "patch"}, requests: 2*2*10 + fooWrites},
	{rule: Rule{Fault: InternalError, Verb: "patch", Resource: "deployments"}, requests: 2*(10+2) + fooWrites},
	{rule: Rule{Fault: InternalError, Verb: "patch", Resource: "foos/status"}, requests: 2*10 + fooWrites},
}

// TestFoo lets each fault strike both implementations, while they are at work and from the start, and changes
// Foos meanwhile. All is as it should be afterwards, and the requests are as few as said.
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
					t.Run(fmt.Sprintf("watch: %s, live=%t", name(rule), live), func(t *testing.T) {
						t.Parallel()
						strike(newWorld(t, implementation, account), rule, live, resources*fault.requests+fooWrites)
					})
				}
				for _, fault := range writeFaults {
					t.Run(fmt.Sprintf("%s %s: %s, live=%t", fault.rule.Verb, fault.rule.Resource, name(fault.rule), live), func(t *testing.T) {
						t.Parallel()
						strike(newWorld(t, implementation, account), fault.rule, live, fault.requests)
					})
				}
			}
		})
	}
}

// atStart are the requests of an operator that starts where nothing fails: a list and a watch for each
// resource, and what a client asks to find its way, which in controller-runtime is discovery.
const atStart = 2*resources + 6

func strike(w *world, rule Rule, live bool, requests int) {
	w.t.Helper()
	server := newServer(w.t, testserver.Config(w.t))
	start := func() {
		if rule.Fault == Hang {
			w.start(impatient(server))
		} else {
			w.start(guarded(server))
		}
	}

	w.create("first", 1)
	if live {
		start()
		w.expectRollingOut("first")
		w.rollOut("first")
	}
	asked := len(server.Requests())
	failure := server.Fail(rule)
	if !live {
		start()
		requests += atStart
	}
	w.scale("first", 3)
	w.create("second", 2)
	w.Eventually(failure.Struck).WithPolling(time.Millisecond).Should(BeNumerically(">", 0))
	<-time.After(window)
	seen := server.Requests()[asked:]
	w.Expect(len(seen)).To(BeNumerically("<=", requests), "%v", seen)

	failure.Lift()
	lifted := time.Now()
	w.expectRollingOut("first")
	w.expectRollingOut("second")
	took := time.Since(lifted)
	w.rollOut("first")
	w.rollOut("second")
	w.expectEnd(map[string]int32{"first": 3, "second": 2})
	w.t.Logf("%s: %s %s: %s, live=%t, for %s: %v; at most %d; as it should be %.1f s after", w.implementation,
		rule.Verb, rule.Resource, name(rule), live, window, seen, requests, took.Seconds())
}

// guarded has an operator go through a proxy, its watches guarded as cmd/main.go guards them.
func guarded(server *Server) func(*rest.Config) {
	return func(config *rest.Config) {
		server.Route(config)
		connect.GuardWatches(config)
	}
}

// impatient is guarded, with a watch that hangs for a second ended already.
func impatient(server *Server) func(*rest.Config) {
	return func(config *rest.Config) {
		server.Route(config)
		config.Wrap(connect.IdleWatch(idle))
		connect.GuardWatches(config)
	}
}

// TestFooWithoutEvents asserts that nothing hangs on an Event: the API server refuses each, it is asked once,
// and the Foo is Ready all the same.
func TestFooWithoutEvents(t *testing.T) {
	t.Parallel()
	for _, implementation := range inprocess.Names() {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, implementation, inprocess.NewAccount(t))
			server := newServer(t, testserver.Config(t))
			failure := server.Fail(Rule{Fault: InternalError, Verb: "create", Resource: "events"})
			running := w.start(guarded(server))
			w.create("first", 1)
			for replicas := range int32(3) {
				w.scale("first", 1+replicas)
				w.expectRollingOut("first")
				w.rollOut("first")
			}
			w.expectEnd(map[string]int32{"first": 3})
			running.Stop(t) // it waits for the Events
			w.Expect(failure.Struck()).To(Equal(3), "one for each time that it became Ready")
			t.Logf("%s: %v", implementation, server.Requests())
		})
	}
}
