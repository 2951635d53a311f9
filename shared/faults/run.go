package faults

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	seedsFlag    = flag.Int("seeds", 100, "faults: how many random schedules are run, after those with one fault")
	fromFlag     = flag.Uint64("from", 1, "faults: the seed of the first of them")
	forFlag      = flag.Duration("for", 0, "faults: how long schedules are run, at most; 0 is until all are")
	classFlag    = flag.String("class", "", "faults: the class of faults, one of "+strings.Join(Classes, ", ")+"; empty is all")
	replayFlag   = flag.String("replay", "", "faults: the file of one schedule to run again; the run must have the timeline in the file")
	failuresFlag = flag.Int("failures", 1, "faults: after how many different failures no more schedules are run")
)

// perCore is how many schedules are run at once on each core: most of the time each waits for the API server.
const perCore = 4

// workers is how many schedules are run at once. Each has its node ports, also on a machine with many cores.
func workers() int { return min(perCore*runtime.GOMAXPROCS(0), portCount/portsOfEach) }

// shrinkTries bounds how many schedules are run to make one that fails smaller.
const shrinkTries = 80

// Run runs the schedules that the flags ask for, several at once, and fails the test with the smallest schedule for what
// fails, its timeline, and a file that replays it.
func Run(t *testing.T, s Suite) {
	t.Helper()
	if *classFlag != "" && !slices.Contains(Classes, *classFlag) {
		t.Fatalf("there is no class %q of faults, only %s", *classFlag, strings.Join(Classes, ", "))
	}
	h := newHunt(t, s)
	reference := h.reference(t)
	if *replayFlag != "" {
		h.replay(t, *replayFlag)
		return
	}
	schedules := h.schedules(reference)
	begin := time.Now()
	h.all(t, schedules)
	took := time.Since(begin)
	fmt.Fprintf(os.Stdout, "faults %s: %d of %d schedules in %.1f s, %.1f a second; %d faults injected, %d never due; %d failures\n",
		t.Name(), h.ran, len(schedules), took.Seconds(), float64(h.ran)/took.Seconds(), h.hits, h.misses, len(h.failures))
	if s.Role != "" {
		lacking, err := h.permissions.lacking(s.Role)
		if err != nil {
			t.Error(err)
		}
		if len(lacking) > 0 {
			t.Errorf("the role lacks what requests need: %s", strings.Join(lacking, "; "))
		}
	}
}

// schedules returns those that the flags ask for: all with a single fault, shuffled so that a time limit leaves out none in
// particular, and then random ones.
func (h *hunt) schedules(reference *expectation) []Schedule {
	all := h.suite.singles(h.name, reference.addresses, *classFlag)
	random := rand.New(rand.NewPCG(*fromFlag, 1))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if *fromFlag > 1 {
		all = nil
	}
	for i := range *seedsFlag {
		all = append(all, h.suite.random(h.name, reference.addresses, *classFlag, *fromFlag+uint64(i)))
	}
	return all
}

// all runs schedules, several at once, until all are done, the time limit has expired, or enough have failed.
func (h *hunt) all(t *testing.T, schedules []Schedule) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var deadline <-chan time.Time
	if *forFlag > 0 {
		deadline = time.After(*forFlag)
	}
	queue := make(chan Schedule)
	go func() {
		defer close(queue)
		for _, one := range schedules {
			select {
			case queue <- one:
			case <-deadline:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	var running sync.WaitGroup
	for range workers() {
		running.Go(func() {
			for one := range queue {
				if h.one(t, one) {
					cancel()
				}
			}
		})
	}
	running.Wait()
}

// one runs one schedule, and reports whether that was the last one.
func (h *hunt) one(t *testing.T, schedule Schedule) bool {
	t.Helper()
	is, _, err := h.try(t.Context(), schedule)
	h.mu.Lock()
	h.ran++
	after := h.ran
	h.hits += len(is.hit)
	h.misses += len(schedule.Faults) - len(is.hit)
	known := slices.ContainsFunc(h.failures, is.failure.Same)
	if is.failure != nil && !known {
		h.failures = append(h.failures, is.failure)
	}
	enough := len(h.failures) >= *failuresFlag
	h.mu.Unlock()
	if err != nil {
		t.Errorf("running a schedule: %v", err)
		return true
	}
	if is.failure != nil && !known {
		h.report(t, schedule, is.failure, after)
	}
	return enough
}

// report shrinks a schedule that fails, and says what happens in it.
func (h *hunt) report(t *testing.T, schedule Schedule, failure *Failure, after int) {
	t.Helper()
	begin := time.Now()
	small, tries := shrink(schedule, shrinkTries, func(one Schedule) bool {
		is, _, err := h.try(t.Context(), one)
		return err == nil && failure.Same(is.failure)
	})
	is, e, err := h.try(t.Context(), small)
	if err != nil || !failure.Same(is.failure) {
		t.Errorf("%s: %s: %s; the smaller schedule does not fail in this way again: %v", failure.Oracle, failure.On, failure.Message, small)
		return
	}
	path, err := Replay{Schedule: small, Failure: is.failure, Timeline: is.timeline}.write(artifactsDir)
	if err != nil {
		t.Errorf("writing the schedule: %v", err)
	}
	text, _ := json.Marshal(small)
	fmt.Fprintf(os.Stdout, "faults %s: found after %d schedules, shrunk to %d faults and %d operations by %d runs in %.1f s: %s: %s\n",
		t.Name(), after, len(small.Faults), len(small.Ops), tries, time.Since(begin).Seconds(), failure.Oracle, failure.On)
	t.Errorf("%s: %s: %s\nschedule: %s\nreplay: -replay=%s\n%s", is.failure.Oracle, is.failure.On, is.failure.Message, text, path, picture(is.timeline, e.timeline))
}

// artifactsDir is where schedules that fail are kept. git ignores it.
const artifactsDir = "_artifacts"

// replay runs the schedule of a file. The run must have the timeline that the file has.
func (h *hunt) replay(t *testing.T, path string) {
	t.Helper()
	r, err := readReplay(path)
	if err != nil {
		t.Fatal(err)
	}
	is, e, err := h.try(t.Context(), r.Schedule)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(os.Stdout, picture(is.timeline, e.timeline))
	for _, fault := range r.Faults {
		if !slices.ContainsFunc(is.addresses, func(at string) bool { return at == fault.On }) {
			t.Errorf("the fault %s was not injected: the run has no %s", fault.Kind, fault.On)
		}
	}
	if at := firstDifference(r.Timeline, is.timeline); at > 0 && len(r.Timeline) > 0 {
		if r.Code != code() {
			t.Errorf("the file is of another version of the code")
		}
		t.Errorf("step %d differs: it was %q, and is %q", at, line(r.Timeline, at), line(is.timeline, at))
	}
	if is.failure != nil {
		t.Errorf("%s: %s: %s", is.failure.Oracle, is.failure.On, is.failure.Message)
	}
}

func line(timeline []string, number int) string {
	if number > len(timeline) {
		return "the end"
	}
	return timeline[number-1]
}
