package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// noAlarm runs a sample of the single faults against the toy without a bug.
func (l lab) noAlarm(t *testing.T) {
	o := &toy{}
	suite := o.suite()
	_, e := l.run(t, o, Schedule{})
	last := slices.Index(e.timeline, "all is done: a new process has nothing to write")
	done := slices.DeleteFunc(slices.Clone(e.timeline[:last]), func(line string) bool { return line != "reconcile toy a" })
	if at := fmt.Sprintf("KEY toy/a#%d", len(done)+1); slices.Contains(e.addresses, at) {
		t.Errorf("a fault may be at %s, when all is done and nothing has to be written", at)
	}
	for i, schedule := range suite.singles(t.Name(), e.addresses, "") {
		if i%29 != 0 {
			continue
		}
		t.Run(schedule.Faults[0].Kind+" "+schedule.Faults[0].On, func(t *testing.T) {
			t.Parallel()
			if is, e := l.run(t, o, schedule); is.failure != nil {
				t.Errorf("%v: %+v\n%s", schedule.Faults, is.failure, picture(is.timeline, e.timeline))
			}
		})
	}
}

func (l lab) replayIsExact(t *testing.T) {
	schedule := Schedule{Faults: []Fault{
		{"behind", "MODIFIED configmaps/a#1", 3}, {"crash-after", "PUT configmaps/a#1", 0}, {"pause", "PUT serviceaccounts/a#1", 2},
		{"lost-after", "POST serviceaccounts/b#1", 0}, {"error-409", "PUT configmaps/b#1", 2}, {"cut", "DELETED configmaps/b#1", 2},
	}}
	first, _ := l.run(t, &toy{}, schedule)
	if len(first.hit) < 5 {
		t.Fatalf("only %v of the faults found their place", first.hit)
	}
	for range 5 {
		again, _ := l.run(t, &toy{}, schedule)
		if at := firstDifference(first.timeline, again.timeline); at > 0 {
			t.Fatalf("line %d differs: %q, and %q", at, line(first.timeline, at), line(again.timeline, at))
		}
	}
}

func (l lab) failureShrinks(t *testing.T) {
	o := &toy{bug: "creates twice"}
	schedule := Schedule{Ops: o.story(), Faults: []Fault{
		{"delay", "ADDED configmaps/b#1", 1}, {"crash-before", "PUT configmaps/a#1", 0}, {"duplicate", "ADDED configmaps/a#1", 0},
		{"lost-after", "POST serviceaccounts#1", 0}, {"clock", "KEY toy/b#1", 60},
	}}
	is, _ := l.run(t, o, schedule)
	if is.failure == nil {
		t.Fatal("it does not fail")
	}
	begin := time.Now()
	small, tries := shrink(schedule, shrinkTries, func(one Schedule) bool {
		if len(one.Ops) == 0 {
			return false
		}
		again, _ := l.run(t, o, one)
		return is.failure.Same(again.failure)
	})
	t.Logf("%d runs, %v", tries, time.Since(begin))
	if len(small.Faults) != 1 || len(small.Ops) != 1 || tries >= shrinkTries {
		t.Errorf("%d runs leave %v", tries, small)
	}
}

// stepWithoutEnd is a reconciliation that hangs after a fault.
func (l lab) stepWithoutEnd(t *testing.T) {
	limit := stepLimit
	stepLimit = 10 * time.Second
	defer func() { stepLimit = limit }()
	is, _ := l.run(t, &toy{bug: "hangs"}, Schedule{Ops: []string{"create a"}, Faults: []Fault{{"error-504", "POST serviceaccounts/a#1", 0}}})
	if is.failure == nil || is.failure.Oracle != "stuck" || is.failure.On != "a" {
		t.Errorf("%+v", is.failure)
	}
}

func (o *toy) story() []string {
	suite := o.suite()
	return suite.story()
}

// TestMinimal: what is left fails, nothing of it can be left out, and the number of tries is bounded.
func TestMinimal(t *testing.T) {
	for name, needed := range map[string][]int{"none": {}, "one": {7}, "two": {0, 19}, "neighbours": {4, 5, 6}, "all": {0, 1, 2}} {
		t.Run(name, func(t *testing.T) {
			size := 20
			if name == "all" {
				size = 3
			}
			var list []int
			for i := range size {
				list = append(list, i)
			}
			tries := 0
			left := minimal(list, func(part []int) bool {
				tries++
				return !slices.ContainsFunc(needed, func(one int) bool { return !slices.Contains(part, one) })
			})
			if !slices.Equal(left, needed) || tries > 200 {
				t.Errorf("%v after %d tries", left, tries)
			}
		})
	}
	schedule := Schedule{Faults: make([]Fault, 50)}
	if _, tries := shrink(schedule, 30, func(Schedule) bool { return false }); tries > 30 {
		t.Errorf("%d tries, want 30 at most", tries)
	}
}

func TestReplayFile(t *testing.T) {
	dir := t.TempDir()
	r := Replay{Schedule: Schedule{Suite: "x", Ops: []string{"a"}, Faults: []Fault{{"lost-after", "PUT a#1", 2}}}, Failure: &Failure{Oracle: "counts", On: "a"}, Timeline: []string{"one", "two"}}
	path, err := r.write(dir)
	if err != nil {
		t.Fatal(err)
	}
	read, err := readReplay(path)
	if err != nil {
		t.Fatal(err)
	}
	if read.Code == "" || read.Code != code() || read.Faults[0] != r.Faults[0] || !slices.Equal(read.Timeline, r.Timeline) || !r.Failure.Same(read.Failure) {
		t.Errorf("%+v", read)
	}
	broken := filepath.Join(dir, "broken.json")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readReplay(broken); err == nil || !strings.Contains(err.Error(), broken) {
		t.Errorf("%v", err)
	}
}
