package plan

import (
	"errors"
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
)

// on returns the places of some rounds of a node.
func on(node string, rounds ...int) map[Place]bool {
	places := map[Place]bool{}
	for _, round := range rounds {
		places[Place{node, round}] = true
	}
	return places
}

// all returns the union of sets of places.
func all(sets ...map[Place]bool) map[Place]bool {
	union := map[Place]bool{}
	for _, set := range sets {
		maps.Copy(union, set)
	}
	return union
}

// upTo returns the rounds from 0 to n-1.
func upTo(n int) []int {
	var rounds []int
	for round := range n {
		rounds = append(rounds, round)
	}
	return rounds
}

func TestForWithJobCount(t *testing.T) {
	t.Parallel()
	abc := []string{"a", "b", "c"}
	for name, test := range map[string]struct {
		in    Input
		jobs  int32
		want  []Round
		error error
	}{
		"fresh, fewer than nodes": {Input{Eligible: abc}, 2, []Round{{Nodes: []string{"a", "b"}}}, nil},
		"fresh, as many as nodes": {Input{Eligible: abc}, 3, []Round{{Nodes: abc}}, nil},
		"fresh, more than nodes": {
			Input{Eligible: []string{"c", "a", "b", "a"}}, 5, []Round{{Nodes: abc}, {Number: 1, Nodes: []string{"a", "b"}}}, nil,
		},
		"unchanged, also where the name order is another": {
			Input{Eligible: abc, Placed: all(on("c", 0, 1), on("b", 4))}, 3,
			[]Round{{Nodes: []string{"c"}}, {Number: 1, Nodes: []string{"c"}}, {Number: 4, Nodes: []string{"b"}}}, nil,
		},
		"false is as if it were not there": {
			Input{
				Eligible: []string{"a", "b"}, Placed: map[Place]bool{{"b", 0}: false}, Finished: map[Place]bool{{"a", 0}: false},
				Kept: map[Place]bool{{"a", 0}: false},
			}, 1, []Round{{Nodes: []string{"a"}}}, nil,
		},
		"a round was made, the next was not": {
			Input{Eligible: abc, Placed: all(on("a", 0), on("b", 0), on("c", 0))}, 4,
			[]Round{{Nodes: abc}, {Number: 1, Nodes: []string{"a"}}}, nil,
		},
		"a node left: its work goes where the fewest are": {
			Input{Eligible: abc[:2], Placed: all(on("a", 0, 1), on("b", 0), on("c", 0))}, 4,
			[]Round{{Nodes: abc[:2]}, {Number: 1, Nodes: abc[:2]}}, nil,
		},
		"a node left that had finished one of two": {
			Input{Eligible: abc[:2], Placed: all(on("a", 0), on("b", 0), on("c", 0, 1)), Finished: on("c", 0)}, 4,
			[]Round{{Nodes: abc[:2]}, {Number: 1, Nodes: []string{"a"}}}, nil,
		},
		"a node joined: nothing moves": {
			Input{Eligible: abc, Placed: all(on("a", 0, 1), on("b", 0, 1))}, 4,
			[]Round{{Nodes: abc[:2]}, {Number: 1, Nodes: abc[:2]}}, nil,
		},
		"a node joined, another left": {
			Input{Eligible: []string{"a", "c"}, Placed: all(on("a", 0, 1), on("b", 0, 1))}, 4,
			[]Round{{Nodes: []string{"a", "c"}}, {Number: 1, Nodes: []string{"a", "c"}}}, nil,
		},
		"a node came back: what it had finished is not placed there": {
			Input{Eligible: []string{"a", "c"}, Placed: on("a", 0), Finished: on("c", 0)}, 3,
			[]Round{{Nodes: []string{"a"}}, {Number: 1, Nodes: []string{"a"}}}, nil,
		},
		"a node came back after its work was placed anew: the last goes": {
			Input{Eligible: abc, Placed: all(on("a", 0, 1), on("b", 0), on("c", 0))}, 3, []Round{{Nodes: abc}}, nil,
		},
		"of nodes with equally many, the last loses": {
			Input{Eligible: abc, Placed: all(on("a", 0, 1), on("b", 0, 1), on("c", 0))}, 4,
			[]Round{{Nodes: abc}, {Number: 1, Nodes: []string{"a"}}}, nil,
		},
		"work that was placed anew had been finished": {
			Input{Eligible: []string{"a", "b"}, Placed: all(on("a", 0), on("b", 0, 1)), Finished: all(on("c", 0), on("b", 0)), Kept: on("b", 0)},
			3, []Round{{Nodes: []string{"a", "b"}}}, nil,
		},
		"work that was placed anew had been finished, and is not recorded": {
			Input{Eligible: []string{"a", "b"}, Placed: all(on("a", 0), on("b", 0, 1)), Finished: all(on("c", 0), on("b", 0)), Kept: on("b", 0), Unrecorded: 1},
			3, []Round{{Nodes: []string{"a", "b"}}, {Number: 1, Nodes: []string{"b"}}}, nil,
		},
		"finished: with a pod it stays, without one it goes": {
			Input{Eligible: abc, Placed: all(on("a", 0), on("b", 0), on("c", 0)), Finished: all(on("a", 0), on("b", 0)), Kept: on("a", 0)},
			3, []Round{{Nodes: []string{"a", "c"}}}, nil,
		},
		"all finished, no node left": {Input{Placed: on("a", 0, 1), Finished: on("a", 0, 1)}, 2, nil, nil},
		"kept, on a node that is not eligible any more": {
			Input{Eligible: []string{"b"}, Placed: on("a", 0, 1), Finished: on("a", 0), Kept: on("a", 0)}, 2, []Round{{Nodes: []string{"a", "b"}}}, nil,
		},
		"kept, but not finished: it is not recorded": {
			Input{Eligible: []string{"b"}, Placed: on("a", 0), Kept: on("a", 0)}, 1, []Round{{Nodes: []string{"b"}}}, nil,
		},
		"kept, but not placed: its pod is being deleted": {
			Input{Eligible: []string{"a"}, Finished: on("a", 0), Kept: on("a", 0)}, 1, nil, nil,
		},
		"stopping": {
			Input{Stopping: true, Eligible: abc, Placed: all(on("a", 0, 1), on("b", 0, 1)), Finished: all(on("a", 1), on("b", 0)), Kept: on("a", 1)},
			9, []Round{{Number: 1, Nodes: []string{"a"}}}, nil,
		},
		"stopping, and nothing finished": {Input{Stopping: true, Eligible: abc, Placed: on("a", 0, 1)}, 9, nil, nil},
		"stopping, and no node":          {Input{Stopping: true}, 9, nil, nil},
		"no node":                        {Input{}, 1, nil, ErrNoEligibleNodes},
		"no node any more": {
			Input{Placed: all(on("a", 0, 1)), Finished: on("a", 0), Kept: on("a", 0)}, 2, []Round{{Nodes: []string{"a"}}}, ErrNoEligibleNodes,
		},
		"new work prefers healthy nodes": {
			Input{Eligible: abc, Unhealthy: map[string]bool{"a": true}}, 3,
			[]Round{{Nodes: []string{"b", "c"}}, {Number: 1, Nodes: []string{"b"}}}, nil,
		},
		"no node is healthy": {
			Input{Eligible: abc, Unhealthy: map[string]bool{"a": true, "b": true, "c": true}, Placed: on("c", 0)}, 2,
			[]Round{{Nodes: []string{"a", "c"}}}, nil,
		},
		"work that is not taken up moves to a healthy node": {
			Input{Eligible: abc[:2], Unhealthy: map[string]bool{"a": true}, Placed: on("a", 0, 1), TakenUp: on("a", 1)}, 2,
			[]Round{{Nodes: []string{"b"}}, {Number: 1, Nodes: []string{"a"}}}, nil,
		},
		"as much of it as there is room for": {
			Input{Eligible: abc[:2], Unhealthy: map[string]bool{"a": true}, Placed: on("a", upTo(3)...), Finished: on("b", upTo(31)...)}, 34,
			[]Round{{Nodes: []string{"a"}}, {Number: 1, Nodes: []string{"a"}}, {Number: 31, Nodes: []string{"b"}}}, nil,
		},
		"as many rounds as can be": {Input{Eligible: []string{"a"}, Placed: on("a", upTo(31)...)}, 32, roundsOf("a", 32), nil},
		"one too many":             {Input{Eligible: []string{"a"}}, 33, nil, &TooManyRoundsError{JobCount: 33, Nodes: 1, Excess: 1}},
		"too many: nothing is placed anew": {
			Input{Eligible: []string{"a"}, Placed: all(on("a", 0, 1), on("b", 0))}, 40,
			[]Round{{Nodes: []string{"a"}}, {Number: 1, Nodes: []string{"a"}}}, &TooManyRoundsError{JobCount: 40, Nodes: 1, Excess: 8},
		},
		"too many: what is finished does not run again": {
			Input{Eligible: []string{"a"}, Placed: on("a", 0, 1), Finished: on("a", 0)}, 40,
			[]Round{{Number: 1, Nodes: []string{"a"}}}, &TooManyRoundsError{JobCount: 40, Nodes: 1, Excess: 8},
		},
		"too many for the nodes, but enough is finished elsewhere": {
			Input{Eligible: []string{"a"}, Finished: on("b", upTo(32)...)}, 64, roundsOf("a", 32), nil,
		},
		"a round that there is not": {
			Input{Eligible: []string{"a"}, Placed: on("a", -1, 32, 99), Finished: on("b", -1, 32)}, 3, []Round{{Nodes: []string{"a"}}}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			test.in.JobCount = &test.jobs
			rounds, err := For(test.in)
			g.Expect(rounds).To(Equal(test.want))
			if test.error == nil {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(Equal(test.error))
			}
		})
	}
}

// roundsOf returns the first rounds, each on one node.
func roundsOf(node string, count int) []Round {
	var rounds []Round
	for round := range count {
		rounds = append(rounds, Round{Number: round, Nodes: []string{node}})
	}
	return rounds
}

func TestForEveryNode(t *testing.T) {
	t.Parallel()
	ab := []string{"a", "b"}
	done := all(on("b", 0), on("a", 0))
	for name, test := range map[string]struct {
		in    Input
		want  []Round
		error error
	}{
		"fresh":                           {Input{Eligible: ab}, []Round{{Everywhere: true}}, nil},
		"finished, and the pods live":     {Input{Eligible: ab, Finished: done, Kept: done}, []Round{{Everywhere: true}}, nil},
		"finished, and the pods are gone": {Input{Eligible: ab, Finished: done}, []Round{{Everywhere: true, Nodes: ab}}, nil},
		"finished on a node that is gone": {Input{Eligible: ab[:1], Finished: done, Kept: on("a", 0)}, []Round{{Everywhere: true, Nodes: ab[1:]}}, nil},
		"what is placed does not matter":  {Input{Eligible: ab, Placed: on("c", 0, 1)}, []Round{{Everywhere: true}}, nil},
		"no node":                         {Input{}, []Round{{Everywhere: true}}, ErrNoEligibleNodes},
		"no node any more":                {Input{Finished: done}, []Round{{Everywhere: true, Nodes: ab}}, ErrNoEligibleNodes},
		"stopping":                        {Input{Eligible: ab, Finished: done, Kept: on("b", 0), Stopping: true}, []Round{{Nodes: ab[1:]}}, nil},
		"stopping, and nothing finished":  {Input{Eligible: ab, Stopping: true}, nil, nil},
		"stopping, and no node":           {Input{Stopping: true}, nil, nil},
		"kept, but not finished":          {Input{Eligible: ab, Kept: on("a", 0), Stopping: true}, nil, nil},
		"false is as if it were not there": {
			Input{Eligible: ab, Finished: map[Place]bool{{"a", 0}: false}, Kept: map[Place]bool{{"a", 0}: true}}, []Round{{Everywhere: true}}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			rounds, err := For(test.in)
			g.Expect(rounds).To(Equal(test.want))
			g.Expect(errors.Is(err, test.error)).To(BeTrue(), "the error is %v", err)
		})
	}
}

func TestTooManyRoundsSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	_, err := For(Input{JobCount: new(int32(100)), Eligible: []string{"a", "b", "c"}})
	g.Expect(err).To(MatchError("4 of 100 workers have no place: 3 eligible nodes take at most 32 each"))
}

// For does not change its input.
func TestForLeavesItsInput(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	in := Input{
		JobCount: new(int32(7)), Eligible: []string{"c", "a", "b"}, Placed: all(on("c", 0), on("d", 0)),
		Finished: on("c", 0), Kept: on("c", 0),
	}
	before := in
	before.Eligible, before.Placed = slices.Clone(in.Eligible), maps.Clone(in.Placed)
	before.Finished, before.Kept = maps.Clone(in.Finished), maps.Clone(in.Kept)
	_, err := For(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(in).To(Equal(before))
}
