// Package plan spreads the workers of a Goop over nodes. It knows no Kubernetes client: what is to be is a pure
// function of the nodes, of where workers are, and of what is recorded.
//
// A worker has a place: a node, and the round of which it is there. A round is no phase in time but a number, "the
// r-th worker of its node", and all rounds run at once. Each round is one DaemonSet, and its node affinity is the
// only memory of where unfinished work is placed.
package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// Place is where a worker is: the Round-th, from 0, of its Node.
type Place struct {
	Node  string
	Round int
}

// Input is what a plan depends on. Of the maps only the keys with true count.
type Input struct {
	// JobCount is how many workers there are to be in all; nil: exactly one on every eligible node.
	JobCount *int32
	// Eligible are the nodes that are there and may be used, in any order.
	Eligible []string
	// Placed is where the DaemonSets have workers by their affinity, finished or not. Without a JobCount it is
	// not looked at.
	Placed map[Place]bool
	// Finished is what is recorded, also of nodes that are gone. It is never placed again.
	Finished map[Place]bool
	// Kept are those of Finished whose pod still lives, and is to stay: it has the worker's log.
	Kept map[Place]bool
	// Stopping is set while the Goop is suspended, or about to end: nothing stays but what is kept.
	Stopping bool
}

// Round is what one DaemonSet is to match.
type Round struct {
	// Number of the round, from 0.
	Number int
	// Everywhere is set where Nodes are not those of the round, but those that it leaves out.
	Everywhere bool
	// Nodes are sorted.
	Nodes []string
}

// ErrNoEligibleNodes means that there is work to be done and no node for it. It heals when one comes.
var ErrNoEligibleNodes = errors.New("no node is eligible")

// TooManyRoundsError means that work is left for which no eligible node has a round. It heals when nodes come.
type TooManyRoundsError struct {
	// JobCount is that of the Goop, Nodes how many are eligible, Excess how many of its workers have no place.
	JobCount, Nodes, Excess int
}

func (e *TooManyRoundsError) Error() string {
	return fmt.Sprintf("%d of %d workers have no place: %d eligible nodes take at most %d each",
		e.Excess, e.JobCount, e.Nodes, v1alpha1.MaxRounds)
}

// For returns the rounds to have, by their number. A DaemonSet whose round is not among them is to match nothing.
//
// What is placed on an eligible node stays there. What is not placed yet, or no longer as its node is not eligible
// any more, is placed where the fewest workers are or were: on the first such node by name, in its lowest round that
// is free. If more is placed than is left to do, the surplus goes in the reverse order: that happens if a node comes
// back after its work was placed anew, or if work that was placed anew turns out to have been finished.
//
// The error is ErrNoEligibleNodes or a *TooManyRoundsError. The rounds that come with it count all the same: nothing
// is placed anew in them, and what is placed stays.
func For(in Input) ([]Round, error) {
	if in.JobCount == nil {
		return everywhere(in)
	}
	nodes := occupancies(in)
	var err error
	if !in.Stopping {
		err = settle(nodes, int(*in.JobCount)-count(in.Finished), int(*in.JobCount))
	}
	return rounds(nodes), err
}

// everywhere is the plan without a JobCount. What is not listed is matched, so that a node that joins gets its worker
// from the DaemonSet alone.
func everywhere(in Input) ([]Round, error) {
	var listed []string
	for place, finished := range in.Finished {
		if finished && place.Round == 0 && in.Kept[place] == in.Stopping {
			listed = append(listed, place.Node)
		}
	}
	slices.Sort(listed)
	switch {
	case in.Stopping && listed == nil:
		return nil, nil
	case in.Stopping:
		return []Round{{Nodes: listed}}, nil
	case len(in.Eligible) == 0:
		return []Round{{Everywhere: true, Nodes: listed}}, ErrNoEligibleNodes
	}
	return []Round{{Everywhere: true, Nodes: listed}}, nil
}

// settle places the work that is left on the eligible ones of nodes.
func settle(nodes []*occupancy, left, jobCount int) error {
	eligible := slices.DeleteFunc(slices.Clone(nodes), func(n *occupancy) bool { return !n.eligible })
	free := 0
	for _, node := range eligible {
		left -= node.open.count()
		free += v1alpha1.MaxRounds - node.taken().count()
	}
	switch {
	case left > 0 && len(eligible) == 0:
		return ErrNoEligibleNodes
	case left > free:
		return &TooManyRoundsError{JobCount: jobCount, Nodes: len(eligible), Excess: left - free}
	case left > 0:
		add(eligible, left)
	case left < 0:
		remove(eligible, -left)
	}
	return nil
}

// add places so many workers, always where the fewest are. There is room for them.
func add(nodes []*occupancy, workers int) {
	for load := range v1alpha1.MaxRounds {
		for _, node := range nodes {
			if workers == 0 {
				return
			}
			if node.taken().count() == load {
				node.open |= node.taken().lowestFree()
				workers--
			}
		}
	}
}

// remove is add in reverse. Only unfinished work can go.
func remove(nodes []*occupancy, workers int) {
	for load := v1alpha1.MaxRounds; load > 0; load-- {
		for _, node := range slices.Backward(nodes) {
			if workers == 0 {
				return
			}
			if node.open != 0 && node.taken().count() == load {
				node.open &^= node.open.highest()
				workers--
			}
		}
	}
}

// rounds reads the plan from the nodes, which are sorted by name.
func rounds(nodes []*occupancy) []Round {
	var lists [v1alpha1.MaxRounds][]string
	for _, node := range nodes {
		for round := range (node.open | node.kept).all() {
			lists[round] = append(lists[round], node.name)
		}
	}
	var plan []Round
	for number, list := range lists {
		if list != nil {
			plan = append(plan, Round{Number: number, Nodes: list})
		}
	}
	return plan
}

func count(places map[Place]bool) int {
	count := 0
	for found := range maps.Values(places) {
		if found {
			count++
		}
	}
	return count
}
