package faults

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// lab runs schedules of toys on one API server.
type lab struct{ *hunt }

// run runs the story of a toy, or other operations, with faults.
func (l lab) run(t *testing.T, o *toy, schedule Schedule) (outcome, *expectation) {
	t.Helper()
	suite := o.suite()
	h := &hunt{suite: &suite, name: t.Name(), server: l.server, permissions: l.permissions, expectations: map[string]func() (*expectation, error){}}
	if schedule.Ops == nil {
		schedule.Ops = suite.story()
	}
	is, e, err := h.try(t.Context(), schedule)
	if err != nil {
		t.Fatal(err)
	}
	return is, e
}

func TestStepped(t *testing.T) {
	l := lab{newHunt(t, (&toy{}).suite())}
	t.Run("each fault happens", l.eachFaultHappens)
	t.Run("each oracle speaks", l.eachOracleSpeaks)
	t.Run("an operator without a bug has no alarm", l.noAlarm)
	t.Run("a replay is exact", l.replayIsExact)
	t.Run("a failure shrinks", l.failureShrinks)
	t.Run("faults that meet", l.combined)
	t.Run("a step that does not end", l.stepWithoutEnd)
}

// proof is a fault, and what shows that it was there: lines of the timeline in this order, and what the toy saw.
type proof struct {
	fault Fault
	lines []string
	never string
	saw   func(*toy) bool
}

func (l lab) eachFaultHappens(t *testing.T) {
	lost := func(o *toy) bool { return o.seen(func(err error) bool { return errors.Is(err, errLost) }) == 1 }
	saw := func(times int, is func(error) bool) func(*toy) bool {
		return func(o *toy) bool { return o.seen(is) == times }
	}
	const put, first = "PUT serviceaccounts/a#1", "ADDED configmaps/a#1"
	proofs := []proof{
		{Fault{"crash-before", put, 0}, []string{"the process ends before " + put, "a new process starts", "PUT serviceaccounts/a#2 → 200"}, put + " →", nil},
		{Fault{"crash-after", put, 0}, []string{put + " → 200", "the process ends after " + put, "a new process starts"}, "PUT serviceaccounts/a#2", nil},
		{Fault{"lost-before", put, 0}, []string{put + " is lost", "PUT serviceaccounts/a#2 → 200"}, put + " →", lost},
		{Fault{"lost-after", put, 0}, []string{put + " → 200", "the response to " + put + " is lost"}, "PUT serviceaccounts/a#2", lost},
		{Fault{"error-403", put, 0}, []string{put + " gets error-403", "PUT serviceaccounts/a#2 → 200"}, put + " →", saw(1, apierrors.IsForbidden)},
		{Fault{"error-404", put, 0}, []string{put + " gets error-404"}, put + " →", saw(1, apierrors.IsNotFound)},
		{Fault{"error-409", put, 0}, []string{put + " gets error-409"}, put + " →", saw(1, apierrors.IsConflict)},
		{Fault{"error-409", put, 5}, []string{put + " gets", "PUT serviceaccounts/a#6 gets", "PUT serviceaccounts/a#7 → 200"}, put + " →", saw(6, apierrors.IsConflict)},
		{Fault{"error-422", put, 0}, []string{put + " gets error-422"}, put + " →", saw(1, apierrors.IsInvalid)},
		{Fault{"error-429", put, 0}, []string{put + " gets error-429"}, put + " →", saw(1, apierrors.IsTooManyRequests)},
		{Fault{"error-500", put, 0}, []string{put + " gets error-500"}, put + " →", saw(1, apierrors.IsInternalError)},
		{Fault{"error-504", put, 0}, []string{put + " gets error-504"}, put + " →", saw(1, apierrors.IsTimeout)},
		{Fault{"delay", "ADDED serviceaccounts/a#1", 1}, []string{"fault delay", "event: MODIFIED configmaps/a", "reconcile toy a", "event: ADDED serviceaccounts/a"}, "", nil},
		{Fault{"freeze", "MODIFIED configmaps/a#1", 0}, []string{"fault freeze", "op grow a", "event: MODIFIED configmaps/a"}, "", nil},
		{Fault{"behind", "MODIFIED configmaps/a#1", 1}, []string{"event: ADDED configmaps/a", "fault behind", "reconcile toy a", "event: MODIFIED configmaps/a"}, "", nil},
		{Fault{"duplicate", "MODIFIED configmaps/a#2", 0}, []string{"fault duplicate", "event: MODIFIED configmaps/a", "event: MODIFIED configmaps/a", "reconcile"}, "", nil},
		{Fault{"coalesce", "MODIFIED configmaps/a#2", 0}, []string{"fault coalesce", "event: configmaps are listed again"}, "", nil},
		{Fault{"cut", first, 1}, []string{"fault cut", "event: configmaps are listed again", "reconcile toy a"}, "event: ADDED configmaps/a", nil},
		{Fault{"time-travel", "PUT configmaps/a#2", 2}, []string{"the process ends after PUT configmaps/a#2", "its cache 2 events behind", "reconcile toy a", "event: MODIFIED configmaps/a"}, "",
			func(o *toy) bool { return isBefore(o.sizes, "2", "1") }},
		{Fault{"clock", "KEY toy/a#2", 7200}, []string{"fault clock: 7200 s later"}, "", func(o *toy) bool {
			return slices.ContainsFunc(o.times, func(one time.Time) bool { return one.Sub(o.times[0]) >= 2*time.Hour })
		}},
		{Fault{"pause", put, 2}, []string{"the process pauses before " + put, "a new process starts", "PUT serviceaccounts/a#2 → 200", "the paused process goes on", put + " → 409", "the paused process ends"}, "", nil},
		{Fault{"op/take a's name", "POST serviceaccounts/a#1", 0}, []string{"op take a's name", "user: POST serviceaccounts/a → 201", "POST serviceaccounts/a#1 → 409"}, "", nil},
		{Fault{"down", "OP grow a#1", 1}, []string{"fault down", "op grow a", "a new process starts", put + " → 200"}, "", nil},
		{Fault{"hurry", "OP create a#1", 1}, []string{"op create a", "reconcile toy a", "op grow a"}, "reconcile toy a reconcile toy a", nil},
	}
	for _, one := range proofs {
		t.Run(one.fault.Kind+" "+one.fault.On, func(t *testing.T) {
			t.Parallel()
			o := &toy{}
			is, _ := l.run(t, o, Schedule{Faults: []Fault{one.fault}})
			if len(is.hit) != 1 {
				t.Fatalf("it was not injected; the run has %q", is.addresses)
			}
			one.check(t, is.timeline)
			if one.saw != nil && !one.saw(o) {
				t.Errorf("the operator saw %v, %v", o.errs, o.sizes)
			}
		})
	}
	t.Run("order", func(t *testing.T) {
		t.Parallel()
		ops := []string{"create a", "create b", "touch both"}
		is, _ := l.run(t, &toy{}, Schedule{Ops: ops, Faults: []Fault{{"order", "KEY toy/a#3", 0}}})
		p := proof{lines: []string{"op touch both", "fault order: KEY toy/a#3 waits", "reconcile toy b", "reconcile toy a"}}
		p.check(t, is.timeline)
	})
}

// check finds the lines in their order.
func (p proof) check(t *testing.T, timeline []string) {
	t.Helper()
	from := 0
	for _, wanted := range p.lines {
		at := slices.IndexFunc(timeline[from:], func(line string) bool { return strings.Contains(line, wanted) })
		if at < 0 {
			t.Fatalf("there is no %q after line %d\n%s", wanted, from, picture(timeline, nil))
		}
		from += at + 1
	}
	if p.never != "" && slices.ContainsFunc(timeline, func(line string) bool { return strings.Contains(line, p.never) }) {
		t.Fatalf("there is %q\n%s", p.never, picture(timeline, nil))
	}
}

func isBefore(list []string, one, other string) bool {
	at := slices.Index(list, one)
	return at >= 0 && slices.Contains(list[at:], other)
}

// eachOracleSpeaks gives the toy a bug that only a fault shows, and one oracle has to name it.
func (l lab) eachOracleSpeaks(t *testing.T) {
	for bug, test := range map[string]struct {
		fault      Fault
		oracle, on string
	}{
		"swallows conflicts":     {fault: Fault{"error-409", "PUT serviceaccounts/a#1", 0}, oracle: "silence", on: "configmaps/a"},
		"keeps the failure":      {fault: Fault{"error-403", "PUT serviceaccounts/a#1", 0}, oracle: "final state", on: "configmaps/a"},
		"begins again":           {fault: Fault{"crash-after", "POST serviceaccounts/a#1", 0}, oracle: "counts", on: "serviceaccounts/a"},
		"chatters":               {fault: Fault{"error-409", "PUT serviceaccounts/a#1", 5}, oracle: "events", on: "all"},
		"creates twice":          {fault: Fault{"lost-after", "POST serviceaccounts#1", 0}, oracle: "invariant: one child for each parent", on: "serviceaccounts/a-2"},
		"adopts":                 {fault: Fault{"op/take a's name", "KEY toy/a#1", 0}, oracle: "invariant: the operator writes only what is its own", on: "serviceaccounts/a"},
		"tries once to finalize": {fault: Fault{"error-500", "PUT configmaps/b#2", 0}, oracle: "finalizers", on: "configmaps/b"},
		"counts starts":          {oracle: "silence", on: "serviceaccounts/a"},
		"is never done":          {oracle: "steady state", on: "serviceaccounts/a"},
	} {
		t.Run(bug, func(t *testing.T) {
			t.Parallel()
			schedule := Schedule{Faults: []Fault{test.fault}}
			if test.fault.Kind == "" {
				schedule.Faults = nil
			}
			is, e := l.run(t, &toy{bug: bug}, schedule)
			if is.failure == nil || is.failure.Oracle != test.oracle || is.failure.On != test.on {
				t.Fatalf("%+v, want %s about %s\n%s", is.failure, test.oracle, test.on, picture(is.timeline, e.timeline))
			}
			if sound, _ := l.run(t, &toy{}, schedule); sound.failure != nil {
				t.Errorf("without the bug: %+v", sound.failure)
			}
		})
	}
	t.Run("an invariant that panics", func(t *testing.T) {
		t.Parallel()
		suite := (&toy{}).suite()
		suite.Invariants = []Invariant{{"it panics", nil}}
		tr, err := newTrial(t.Context(), &suite, l.server, Schedule{Ops: suite.story()}, l.permissions, 0)
		if err != nil {
			t.Fatal(err)
		}
		if is := tr.run(t.Context()); is.failure == nil || is.failure.Oracle != "invariant: it panics" || !strings.Contains(is.failure.Message, "it panics: ") {
			t.Errorf("%+v", is.failure)
		}
	})
}
