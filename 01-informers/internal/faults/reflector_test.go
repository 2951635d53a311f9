package faults

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/workbook/01-informers/internal/connect"
)

// These tests show what a bare reflector of client-go v0.37.2 does about each fault. An informer has no other
// source, so the same holds for every controller.
//
// A round is one call of Reflector.ListAndWatchWithContext in tools/cache/reflector.go. Its first part is a
// streamed list, which is a watch; if that fails for another reason than those below, a list follows, and
// after it a watch: three requests at most. After a round the reflector waits 0.8 s, then 1.6, 3.2 and so on
// up to 30, each times 1 to 2 at random (defaultBackoffInit, defaultBackoffMax, defaultBackoffJitter), until
// it did not have to wait for two minutes (defaultBackoffReset). So the earliest rounds of a window begin at
// 0, 0.8, 2.4 and 5.6 s.
const (
	// window is for how long each fault lasts.
	window = 3 * time.Second
	// rounds begin in a window, at most.
	rounds = 3
	// perRound is the most requests of a round.
	perRound = 3
	// idle is for connect.IdleWatch. The API server's bookmarks are a minute apart, so that every watch ends
	// after it, and a new one begins at once: a request a second more, for each watch.
	idle = time.Second
)

// watchFaults are the ways in which a watch can fail, and the requests that each may lead to in a window, for
// one resource.
var watchFaults = []struct {
	rule     Rule
	requests int
}{
	// The resourceVersion is too old: the reflector asks again for the latest, without a pause. Twice are a
	// pause after the first watch is ended, a second 410, and the watch that succeeds.
	{rule: Rule{Fault: Gone, Times: 2}, requests: 2 + perRound},
	{rule: Rule{Fault: GoneEvent, Times: 2}, requests: 2 + perRound},
	// isWatchErrorRetriable: a pause as between rounds, and the same request again.
	{rule: Rule{Fault: TooManyRequests}, requests: rounds + 1},
	// rest/with_retry.go tries again by itself, as often as 10 times, when it is told to.
	{rule: Rule{Fault: TooManyRequests, RetryAfter: time.Second}, requests: 1 + int(window/time.Second)},
	{rule: Rule{Fault: InternalError}, requests: rounds * perRound},
	// connect.IdleWatch ends the watch, and the reflector begins another: no round ends.
	{rule: Rule{Fault: Hang}, requests: 2 + int(window/idle)},
	// A watch that ends without an event in less than a second ends the round (VeryShortWatchError).
	{rule: Rule{Fault: Cut}, requests: rounds*perRound + int(window/time.Second)},
	// HTTP/2 says that the stream broke, which counts as an event that cannot be read, and ends the round.
	{rule: Rule{Fault: Break}, requests: rounds * perRound},
}

// TestReflector lets each fault strike watches that are under way, and those at the start. All that has
// changed meanwhile is in the store afterwards, and the requests are as few as said.
func TestReflector(t *testing.T) {
	t.Parallel()
	for _, format := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		for _, fault := range watchFaults {
			for _, live := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, live=%t, %s", name(fault.rule), live, format), func(t *testing.T) {
					t.Parallel()
					w := newMirror(t, format, 1)
					if live {
						w.start(connect.IdleWatch(idle))
						w.expectMirrored()
					}
					began := time.Now()
					failure := w.strike(fault.rule)
					if !live {
						w.start(connect.IdleWatch(idle))
					}
					w.change()
					<-time.After(time.Until(began.Add(window)))
					seen := w.server.Requests().Since(began)
					w.Expect(failure.Struck()).To(BeNumerically(">", 0), "it never struck")
					w.Expect(len(seen)).To(BeNumerically("<=", fault.requests), "%v", seen)
					failure.Lift()
					lifted := time.Now()
					w.expectMirrored()
					t.Logf("%s, live=%t, for %s: %v; at most %d; as it should be %.1f s after", name(fault.rule), live, window,
						seen, fault.requests, time.Since(lifted).Seconds())
				})
			}
		}
	}
}

// TestReflectorWhereTheServerIsDown is the one fault that is not a watch's: nobody listens.
func TestReflectorWhereTheServerIsDown(t *testing.T) {
	t.Parallel()
	w := newMirror(t, runtime.ContentTypeProtobuf, 1)
	w.start()
	w.expectMirrored()
	began := time.Now()
	w.Expect(w.server.Refuse()).To(Succeed())
	w.change()
	<-time.After(window)
	seen := w.server.Requests().Since(began)
	// The watch that ended is begun again at once, and from then on as after a 429.
	w.Expect(len(seen)).To(And(BeNumerically(">", 0), BeNumerically("<=", 1+rounds*perRound)))
	w.Expect(w.server.Accept()).To(Succeed())
	w.expectMirrored()
	t.Logf("refused for %s: %v", window, seen)
}

// TestReflectorWithoutIdleWatch is what connect.IdleWatch is for. That it stays so for an hour is shown there.
func TestReflectorWithoutIdleWatch(t *testing.T) {
	t.Parallel()
	w := newMirror(t, runtime.ContentTypeProtobuf, 1)
	w.start()
	w.expectMirrored()
	failure := w.strike(Rule{Fault: Hang, Times: 1})
	before := len(w.server.Requests())
	w.change()
	w.Consistently(w.mirrored).WithTimeout(window).Should(BeFalse())
	w.Expect(failure.Struck()).To(Equal(1))
	w.Expect(w.server.Requests()).To(HaveLen(before), "nothing is asked")
}

// withoutPause are the faults that a reflector does not pause after. In all of them it is streaming the list:
// see connect.PaceWatches.
var withoutPause = []Rule{
	{Fault: Gone},
	{Fault: GoneEvent},
	{Fault: Cut, Whole: 1},
}

// TestReflectorAsksWithoutPause counts what connect.PaceWatches is for.
func TestReflectorAsksWithoutPause(t *testing.T) {
	t.Parallel()
	const times = 50
	for _, rule := range withoutPause {
		t.Run(name(rule), func(t *testing.T) {
			t.Parallel()
			w := newMirror(t, runtime.ContentTypeProtobuf, 2)
			rule.Times = times
			failure := w.strike(rule)
			began := time.Now()
			w.start()
			// With the pauses between rounds it would be a quarter of an hour at least. How fast it is depends on
			// how fast the API server answers.
			w.Eventually(failure.Struck).WithPolling(time.Millisecond).Should(Equal(times))
			took := time.Since(began)
			w.expectMirrored()
			w.Expect(w.server.Requests().Of("list", "")).To(BeEmpty())
			t.Logf("%s: %d times in %.2f s: %.0f a second", name(rule), times, took.Seconds(), times/took.Seconds())
		})
	}
}

func TestReflectorWithPaceWatches(t *testing.T) {
	t.Parallel()
	const burst = 5
	for _, rule := range withoutPause {
		t.Run(name(rule), func(t *testing.T) {
			t.Parallel()
			w := newMirror(t, runtime.ContentTypeProtobuf, 2)
			failure := w.strike(rule)
			began := time.Now()
			w.start(connect.PaceWatches(time.Second, burst))
			w.Eventually(failure.Struck).Should(BeNumerically(">=", burst))
			<-time.After(time.Until(began.Add(window)))
			seen := w.server.Requests().Before(began.Add(window))
			w.Expect(len(seen)).To(BeNumerically("<=", burst+int(window/time.Second)), "%v", seen)
			failure.Lift()
			w.expectMirrored()
			t.Logf("%s for %s: %v", name(rule), window, seen)
		})
	}
}

// name is what a rule does, for a reader.
func name(rule Rule) string {
	text := rule.Fault.String()
	if rule.RetryAfter > 0 {
		text += fmt.Sprintf(" with Retry-After: %.0f", rule.RetryAfter.Seconds())
	}
	if rule.Whole > 0 {
		text += fmt.Sprintf(" after %d events", rule.Whole)
	}
	return text
}
