package faults

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/shared/faults/internal/feed"
)

// Failure is what an oracle says. Two failures of one oracle about one object are the same.
type Failure struct {
	Oracle  string `json:"oracle"`
	On      string `json:"on"`
	Message string `json:"message"`
}

// Same reports whether two failures are of one cause, as far as can be told.
func (f *Failure) Same(other *Failure) bool {
	return f != nil && other != nil && f.Oracle == other.Oracle && f.On == other.On
}

// trial is one run of one schedule.
type trial struct {
	suite          *Suite
	server         *server
	schedule       Schedule
	readYourWrites bool
	state          *State
	names          *names
	permissions    *permissions

	process, paused *process
	pausedQueue     *feed.Queue
	pausedKey       reconcile.Request
	pausedUntil     int
	travel          int // how far behind the next process begins
	steps           int
	turn            string // who writes, if it is not the operator
	progress        int    // counts writes with an effect, and faults
	over            bool   // no fault is injected any more

	mu        sync.Mutex
	seen      map[string]int
	addresses []string
	hit       map[int]bool
	timeline  []string
	recent    []string
	recorded  []Event
	writes    []Write
	typed     map[*unstructured.Unstructured]client.Object
	counts    map[string]*count
	failure   *Failure
}

// count is how often the operator created, changed and deleted one object.
type count struct{ Creates, Updates, Deletes int }

// outcome is what a run leaves.
type outcome struct {
	timeline  []string
	addresses []string
	hit       map[int]bool
	failure   *Failure
	objects   map[string]any
	counts    map[string]*count
	events    int
}

// newTrial prepares a namespace for one run. The clock begins so much after the server's.
func newTrial(ctx context.Context, suite *Suite, s *server, schedule Schedule, perms *permissions, shift time.Duration) (*trial, error) {
	tr := &trial{
		suite: suite, server: s, schedule: schedule, permissions: perms, turn: "user",
		readYourWrites: suite.Operator.ReadYourWrites && !schedule.stale(),
		seen:           map[string]int{}, hit: map[int]bool{}, counts: map[string]*count{},
		typed: map[*unstructured.Unstructured]client.Object{},
	}
	tr.state = &State{trial: tr, Clock: testclock.NewFakeClock(time.Now().Truncate(time.Second).Add(shift))}
	c, err := client.New(s.through(&transport{trial: tr, by: func() string { return tr.turn }}), client.Options{
		Scheme: suite.Operator.Scheme, Mapper: s.mapper, HTTPClient: nil,
	})
	if err != nil {
		return nil, err
	}
	tr.state.Client = client.WithFieldOwner(c, "someone-else")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "faults-"}}
	if err := c.Create(ctx, namespace); err != nil {
		return nil, fmt.Errorf("creating a namespace: %w", err)
	}
	tr.state.Namespace = namespace.Name
	tr.names = newNames(tr)
	s.hub.open(namespace.Name)
	return tr, nil
}

// run makes everything happen that the schedule says.
func (tr *trial) run(ctx context.Context) outcome {
	defer tr.end(ctx)
	tr.settle(ctx, 0)
	for _, name := range tr.schedule.Ops {
		if tr.failure != nil {
			break
		}
		tr.operate(ctx, name)
	}
	tr.unfreeze(0)
	tr.settle(ctx, 0)
	tr.checkSteady(ctx)
	objects := tr.snapshot()
	tr.checkSilence(ctx)
	return outcome{
		timeline: tr.timeline, addresses: tr.addresses, hit: tr.hit, failure: tr.failure,
		objects: objects, counts: tr.counts, events: len(tr.recorded),
	}
}

// stop ends the processes.
func (tr *trial) stop() {
	if tr.paused != nil {
		tr.resume()
	}
	if tr.process != nil {
		if err := tr.process.stop(); err != nil {
			tr.alarm("harness", "the process", err.Error())
		}
	}
}

// end ends the processes and removes what is left.
func (tr *trial) end(ctx context.Context) {
	tr.stop()
	c, err := client.New(tr.server.through(tr.server.base), client.Options{Scheme: tr.suite.Operator.Scheme, Mapper: tr.server.mapper})
	if err == nil {
		err = tr.server.clean(ctx, c, tr.state.Namespace)
	}
	if err != nil {
		tr.line("removing what is left: %v", err)
	}
	tr.server.ports.release(tr.state.taken)
	tr.server.hub.close(tr.state.Namespace)
}

// operate does one operation of the schedule, in steady state, and lets happen what follows.
func (tr *trial) operate(ctx context.Context, name string) {
	at := tr.occurrenceOf("OP " + name)
	faults := tr.hits(at)
	steps := 0
	for _, fault := range faults {
		switch fault.Kind {
		case "down":
			tr.line("fault down: the operator is down, %d h", fault.Arg)
			tr.stop()
		case "hurry":
			steps = max(1, fault.Arg)
		}
	}
	tr.interpose(ctx, name)
	for _, fault := range faults {
		if fault.Kind == "down" {
			for range stepBound {
				if !tr.act(ctx) {
					break
				}
			}
			tr.state.Clock.Step(time.Duration(fault.Arg) * time.Hour)
		}
	}
	tr.unfreeze(2)
	tr.settle(ctx, steps)
	if steps == 0 {
		tr.checkSteady(ctx)
	}
}

// interpose does one operation, now. What fails, fails as it would for a user.
func (tr *trial) interpose(ctx context.Context, name string) {
	turn := tr.turn
	tr.turn = "user"
	defer func() { tr.turn = turn }()
	for _, op := range slices.Concat(tr.suite.Story, tr.suite.Anytime) {
		if op.Name != name {
			continue
		}
		tr.line("op %s", name)
		if err := op.Do(ctx, tr.state); err != nil {
			tr.line("  it fails: %s", tr.masked(err.Error()))
			if len(tr.schedule.Faults) == 0 {
				tr.alarm("operation", name, err.Error())
			}
		}
		return
	}
	tr.alarm("harness", name, "the suite has no such operation")
}

// unfreeze delivers again what is frozen, some steps from now.
func (tr *trial) unfreeze(steps int) {
	if tr.process == nil {
		return
	}
	for _, one := range tr.process.feeds {
		if one.frozen {
			one.frozen, one.held = false, tr.steps+steps
		}
	}
}

func (tr *trial) frozen() bool {
	return tr.process != nil && slices.ContainsFunc(tr.process.feeds, func(one *feeding) bool { return one.frozen })
}
