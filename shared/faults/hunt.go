package faults

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

// hunt runs schedules of one suite on one API server.
type hunt struct {
	suite       *Suite
	name        string
	server      *server
	permissions *permissions

	mu           sync.Mutex
	expectations map[string]func() (*expectation, error)
	mask         func() (map[string]bool, error)
	ran          int
	hits, misses int
	failures     []*Failure
}

func newHunt(t *testing.T, s Suite) *hunt {
	t.Helper()
	server, err := startServer(t, s.Operator)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.watchKinds(s.Operator, slices.Concat(s.Kinds, s.Once)...); err != nil {
		t.Fatal(err)
	}
	return &hunt{suite: &s, name: t.Name(), server: server, permissions: &permissions{}, expectations: map[string]func() (*expectation, error){}}
}

// reference is the undisturbed run of the story. It has to be without a failure.
func (h *hunt) reference(t *testing.T) *expectation {
	t.Helper()
	begin := time.Now()
	e, err := h.expectation(t.Context(), Schedule{Ops: h.suite.story()})
	if err != nil {
		t.Fatal(err)
	}
	if e.failure != nil {
		t.Fatalf("the undisturbed run fails: %s: %s: %s\n%s", e.failure.Oracle, e.failure.On, e.failure.Message, picture(e.timeline, nil))
	}
	fmt.Fprintf(os.Stdout, "faults %s: without faults %d steps, %d points for faults, %.2f s for three runs\n", t.Name(), len(e.timeline), len(e.addresses), time.Since(begin).Seconds())
	return e
}

// expectation is what a schedule is compared with: the same operations, undisturbed. What differs between two such runs is
// known from those of the story.
func (h *hunt) expectation(ctx context.Context, schedule Schedule) (*expectation, error) {
	undisturbed := Schedule{Suite: h.name, Ops: schedule.Ops}
	stale := schedule.stale()
	key := fmt.Sprint(stale, schedule.Ops)
	h.mu.Lock()
	get := h.expectations[key]
	if get == nil {
		get = sync.OnceValues(func() (*expectation, error) {
			masked, err := h.masked(ctx)
			if err != nil {
				return nil, err
			}
			is, err := h.runOnce(ctx, undisturbed, stale, 0)
			return &expectation{is, masked}, err
		})
		h.expectations[key] = get
	}
	h.mu.Unlock()
	return get()
}

// masked returns what differs between two undisturbed runs of the story, whose namespaces and clocks differ.
func (h *hunt) masked(ctx context.Context) (map[string]bool, error) {
	h.mu.Lock()
	if h.mask == nil {
		h.mask = sync.OnceValues(func() (map[string]bool, error) {
			story := Schedule{Suite: h.name, Ops: h.suite.story()}
			one, err := h.runOnce(ctx, story, false, 0)
			if err != nil {
				return nil, err
			}
			other, err := h.runOnce(ctx, story, false, 12345*time.Second)
			masked := map[string]bool{}
			for _, path := range h.suite.differences(one.objects, other.objects) {
				masked[ofKind(path.path)] = true
			}
			return masked, err
		})
	}
	mask := h.mask
	h.mu.Unlock()
	return mask()
}

func (h *hunt) runOnce(ctx context.Context, schedule Schedule, stale bool, shift time.Duration) (outcome, error) {
	tr, err := newTrial(ctx, h.suite, h.server, schedule, h.permissions, shift)
	if err != nil {
		return outcome{}, err
	}
	tr.readYourWrites = h.suite.Operator.ReadYourWrites && !stale
	return tr.run(ctx), nil
}

// try runs a schedule and compares it with its undisturbed run.
func (h *hunt) try(ctx context.Context, schedule Schedule) (outcome, *expectation, error) {
	e, err := h.expectation(ctx, schedule)
	if err != nil {
		return outcome{}, nil, err
	}
	if e.failure != nil {
		return e.outcome, e, nil
	}
	is, err := h.runOnce(ctx, schedule, schedule.stale(), 0)
	if err != nil {
		return outcome{}, nil, err
	}
	if is.failure == nil {
		is.failure = e.compare(h.suite, h.server, schedule, is)
	}
	return is, e, nil
}
