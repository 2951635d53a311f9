package faults

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"
)

// combined runs schedules whose faults meet: an operator without a bug has no alarm in them.
func (l lab) combined(t *testing.T) {
	const put = "PUT serviceaccounts/a#1"
	for name, faults := range map[string][]Fault{
		"a paused process meets a second pause":                 {{"pause", put, 1}, {"error-500", "PUT serviceaccounts/a#2", 0}, {"pause", "PUT configmaps/a#2", 1}},
		"the operator is down while a process is paused":        {{"hurry", "OP create a#1", 1}, {"pause", "POST serviceaccounts/a#1", 1}, {"down", "OP grow a#1", 1}},
		"no time to settle after the operator was down":         {{"down", "OP delete b#1", 1}, {"hurry", "OP delete b#1", 1}},
		"a process that ends after a pause has no cache behind": {{"pause", put, 2}, {"time-travel", put, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is, e := l.run(t, &toy{}, Schedule{Faults: faults})
			if is.failure != nil {
				t.Errorf("%+v\n%s", is.failure, picture(is.timeline, e.timeline))
			}
			if text := strings.Join(is.timeline, "\n"); strings.Contains(text, "events behind") {
				t.Errorf("a cache is behind where nothing began anew in time:\n%s", text)
			}
		})
	}
}

// Queues come in any order, and are kept by name: a worker that waits must not be awaited once more.
func TestAwaitWorkersOfTwoControllers(t *testing.T) {
	limit := stepLimit
	stepLimit = time.Minute
	defer func() { stepLimit = limit }()
	p := &process{trial: &trial{state: &State{Clock: testclock.NewFakeClock(time.Now())}}, ended: make(chan error, 1)}
	work := func(name string) func() {
		queue := p.newQueue(name, nil)
		go queue.Get()
		return queue.ShutDown
	}
	defer work("b")()
	waited := make(chan error, 1)
	go func() { waited <- p.awaitWorkers(2) }()
	time.Sleep(100 * time.Millisecond)
	defer work("a")()
	if err := <-waited; err != nil {
		t.Error(err)
	}
}

// A machine may have many cores. All its schedules find their ports.
func TestSchedulesFindTheirPorts(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(64))
	s := &server{}
	for range workers() {
		state := &State{trial: &trial{server: s}}
		if _, err := state.Port(portsOfEach - 1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := (&State{trial: &trial{server: &server{}}}).Port(portsOfEach); err == nil {
		t.Error("a schedule has more ports than are left to it on a machine with many cores")
	}
}

// A step that does not end may outlive its run.
func TestNothingIsInANamespaceThatIsClosed(t *testing.T) {
	h := newHub(t.Context(), nil, nil)
	h.open("a")
	h.close("a")
	if live, events := h.live("a", schema.GroupResource{}), h.from("a", schema.GroupResource{}, 0); len(live)+len(events) > 0 {
		t.Errorf("got %v, %v", live, events)
	}
}

// TestDifferences: values that print alike are not the same.
func TestDifferences(t *testing.T) {
	for name, one := range map[string]struct{ should, is any }{
		"words of one argument": {[]any{"a b"}, []any{"a", "b"}},
		"an empty argument":     {[]any{}, []any{""}},
		"a number and its text": {int64(80), "80"},
		"nothing and its text":  {nil, "<nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			if len(differences("", one.should, one.is)) != 1 {
				t.Errorf("%v and %v do not differ", one.should, one.is)
			}
			if len(differences("", one.should, one.should)) != 0 {
				t.Errorf("%v differs from itself", one.should)
			}
		})
	}
}

// TestLinesWithoutAnOrder: of a text whose lines have no order, each line has to be there as often.
func TestLinesWithoutAnOrder(t *testing.T) {
	suite := Suite{Unordered: map[string]string{"$.data.record": "it is a set"}}
	record := func(key, lines string) map[string]any {
		return map[string]any{"configmaps/a": map[string]any{"data": map[string]any{key: lines}}}
	}
	for _, one := range []struct {
		name, key, should, is string
		differ                bool
	}{
		{"another order", "record", "a\nb\nc\n", "a\nc\nb\n", false},
		{"a line is missing", "record", "a\nb\nc\n", "a\nc\n", true},
		{"a line is there twice", "record", "a\nb\n", "b\na\nb\n", true},
		{"another text", "script", "a\nb\n", "b\na\n", true},
	} {
		t.Run(one.name, func(t *testing.T) {
			if differ := len(suite.differences(record(one.key, one.should), record(one.key, one.is))) > 0; differ != one.differ {
				t.Errorf("they differ: %t", differ)
			}
		})
	}
}
