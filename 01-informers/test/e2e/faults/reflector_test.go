package faults

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/workbook/01-informers/internal/connect"
	"example.com/workbook/shared/faults/wire"
)

// These tests show how a reflector of client-go v0.37.2 handles each fault. A reflector fills each informer, so every
// controller does the same.
//
// A round is one call of Reflector.ListAndWatchWithContext in tools/cache/reflector.go. It begins with a streaming list,
// which is a watch. If that fails for a reason that the rows below do not have, a list and a watch follow: three requests
// at most. After a round the reflector waits for 0.8 s, then 1.6, 3.2 and so on up to 30 s, multiplied by 1 to 2 at random
// (defaultBackoffInit, defaultBackoffMax, defaultBackoffJitter), and begins again with 0.8 s after two minutes without a
// wait (defaultBackoffReset). So the earliest rounds of a window begin at 0, 0.8, 2.4 and 5.6 s.
const (
	// window is how long each fault lasts.
	window = 3 * time.Second
	// rounds is the most rounds that begin in a window.
	rounds = 3
	// perRound is the most requests of a round.
	perRound = 3
	// idle is the limit for connect.IdleWatch. It is shorter than the minute between two bookmarks of the API server, so
	// that each watch ends after it and a new one begins at once: one more request a second for each watch.
	idle = time.Second
)

// watchFaults are the ways in which a watch can fail, and the most requests in a window for one resource.
var watchFaults = []struct {
	rule     wire.Rule
	requests int
}{
	// The resourceVersion is too old: the reflector asks for the latest at once. Two of these are a wait after the first
	// watch has ended, a second 410, and the watch that succeeds.
	{rule: wire.Rule{Fault: wire.Gone, Times: 2}, requests: 2 + perRound},
	{rule: wire.Rule{Fault: wire.GoneEvent, Times: 2}, requests: 2 + perRound},
	// isWatchErrorRetriable: the same request again, after a wait as between rounds.
	{rule: wire.Rule{Fault: wire.TooManyRequests}, requests: rounds + 1},
	// rest/with_retry.go retries up to 10 times, when the header says.
	{rule: wire.Rule{Fault: wire.TooManyRequests, RetryAfter: time.Second}, requests: 1 + int(window/time.Second)},
	{rule: wire.Rule{Fault: wire.InternalError}, requests: rounds * perRound},
	// connect.IdleWatch ends the watch, and the reflector begins another: no round ends.
	{rule: wire.Rule{Fault: wire.Hang}, requests: 2 + int(window/idle)},
	// A watch that ends without an event in less than a second ends the round (VeryShortWatchError).
	{rule: wire.Rule{Fault: wire.Cut}, requests: rounds*perRound + int(window/time.Second)},
	// HTTP/2 resets the stream, which the reflector sees as an event that cannot be decoded: that ends the round.
	{rule: wire.Rule{Fault: wire.Break}, requests: rounds * perRound},
}

// TestReflector injects each fault into open watches, and into those at the start. Afterwards the store has all that has
// changed meanwhile, and there were no more requests than expected.
func TestReflector(t *testing.T) {
	t.Parallel()
	for _, format := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		for _, fault := range watchFaults {
			for _, live := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, live=%t, %s", fault.rule, live, format), func(t *testing.T) {
					t.Parallel()
					w := newMirror(t, format, 1)
					if live {
						w.start(connect.IdleWatch(idle))
						w.expectMirrored()
					}
					began := time.Now()
					injection := w.inject(fault.rule)
					if !live {
						w.start(connect.IdleWatch(idle))
					}
					w.change()
					w.Eventually(injection.Count).WithPolling(interval).Should(BeNumerically(">", 0), "no watch failed")
					<-time.After(time.Until(began.Add(window)))
					seen := w.proxy.Requests().Since(began).Before(began.Add(window))
					w.Expect(len(seen)).To(BeNumerically("<=", fault.requests), "%v", seen)
					injection.Stop()
					stopped := time.Now()
					w.expectMirrored()
					t.Logf("%s, live=%t, for %s: %v; at most %d; converged %.1f s after", fault.rule, live, window,
						seen, fault.requests, time.Since(stopped).Seconds())
				})
			}
		}
	}
}

// withoutPause are the faults that a reflector does not wait after. All of them are faults of a streaming list: see
// connect.LimitWatches.
var withoutPause = []wire.Rule{
	{Fault: wire.Gone},
	{Fault: wire.GoneEvent},
	{Fault: wire.Cut, Whole: 1},
}

// TestReflectorAsksWithoutPause counts the requests that connect.LimitWatches prevents.
func TestReflectorAsksWithoutPause(t *testing.T) {
	t.Parallel()
	const times = 50
	for _, rule := range withoutPause {
		t.Run(rule.String(), func(t *testing.T) {
			t.Parallel()
			w := newMirror(t, runtime.ContentTypeProtobuf, 2)
			rule.Times = times
			injection := w.inject(rule)
			began := time.Now()
			w.start()
			// With the waits between rounds this would take a quarter of an hour at least. How long it takes depends on the API
			// server's response time.
			w.Eventually(injection.Count).WithPolling(time.Millisecond).Should(Equal(times))
			took := time.Since(began)
			w.expectMirrored()
			w.Expect(w.proxy.Requests().Of("list", "")).To(BeEmpty())
			t.Logf("%s: %d times in %.2f s: %.0f a second", rule, times, took.Seconds(), times/took.Seconds())
		})
	}
}

func TestReflectorWithLimitWatches(t *testing.T) {
	t.Parallel()
	const burst = 5
	for _, rule := range withoutPause {
		t.Run(rule.String(), func(t *testing.T) {
			t.Parallel()
			w := newMirror(t, runtime.ContentTypeProtobuf, 2)
			injection := w.inject(rule)
			began := time.Now()
			w.start(connect.LimitWatches(time.Second, burst))
			w.Eventually(injection.Count).Should(BeNumerically(">=", burst))
			<-time.After(time.Until(began.Add(window)))
			seen := w.proxy.Requests().Before(began.Add(window))
			w.Expect(len(seen)).To(BeNumerically("<=", burst+int(window/time.Second)), "%v", seen)
			injection.Stop()
			w.expectMirrored()
			t.Logf("%s for %s: %v", rule, window, seen)
		})
	}
}
