// Package plan spreads the workers of a Goop over nodes. It uses no Kubernetes client: the plan is a pure function of the
// nodes, of where workers are, and of what is recorded.
//
// A worker has a place: a node and a round. A round is a number: round r has the r-th worker of each of its nodes. All
// rounds run at the same time. Each round is one DaemonSet. Where unfinished work is placed is stored only in the node
// affinity of the DaemonSets.
package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// Place is where a worker runs: it is the Round-th worker, from 0, on its Node.
type Place struct {
	Node  string
	Round int
}

// Input is what a plan depends on. In the maps only keys with the value true count.
type Input struct {
	// JobCount is the desired number of workers; nil: exactly one on every eligible node.
	JobCount *int32
	// Eligible are the existing nodes that may be used, in any order.
	Eligible []string
	// Placed is where the DaemonSets have workers according to their affinity, finished or not. It is ignored without a
	// JobCount.
	Placed map[Place]bool
	// Finished are the workers that have finished, including those on nodes that no longer exist. They are never placed
	// again.
	Finished map[Place]bool
	// Unrecorded is how many of Finished are not recorded. A crash may lose their results, so nothing else is removed because
	// of them.
	Unrecorded int
	// Kept are those of Finished whose pods still exist and stay, because they have the workers' logs.
	Kept map[Place]bool
	// Unhealthy are the nodes on which work may not begin for now. Work is placed there only if there is no room elsewhere.
	Unhealthy map[string]bool
	// TakenUp are the unfinished workers in Placed whose pods a kubelet has accepted: they stay, also on an unhealthy node.
	// Without a JobCount both Unhealthy and TakenUp are ignored.
	TakenUp map[Place]bool
	// Stopping is set while the Goop is suspended or ending: only workers in Kept stay.
	Stopping bool
}

// Round is the set of nodes that one DaemonSet must match.
type Round struct {
	// Number of the round, from 0.
	Number int
	// Everywhere means that the round has all nodes except Nodes.
	Everywhere bool
	// Nodes are sorted.
	Nodes []string
}

// ErrNoEligibleNodes means that there is work but no node for it. The condition ends when an eligible node joins.
var ErrNoEligibleNodes = errors.New("no node is eligible")

// TooManyRoundsError means that the eligible nodes have no free rounds for a part of the work. The condition ends when
// nodes join.
type TooManyRoundsError struct {
	// JobCount is that of the Goop, Nodes the number of eligible nodes, and Excess the number of workers without a place.
	JobCount, Nodes, Excess int
}

func (e *TooManyRoundsError) Error() string {
	return fmt.Sprintf("%d of %d workers have no place: %d eligible nodes take at most %d each",
		e.Excess, e.JobCount, e.Nodes, v1alpha1.MaxRounds)
}

// For returns the desired rounds, sorted by number. A DaemonSet whose round is not among them must match no node.
//
// Work that is placed on an eligible node stays there, with one exception: work on an unhealthy node that no kubelet has
// accepted moves if healthy nodes have room. Work without a place, or whose node is no longer eligible, is placed on the
// node with the fewest workers, finished ones included: on the first such node by name, healthy nodes first, in its
// lowest free round. If more work is placed than is left to do, the surplus is removed in the reverse order. That happens
// if a node returns after its work was placed again, or if such work turns out to have finished and is recorded.
//
// The error is ErrNoEligibleNodes or a *TooManyRoundsError. The rounds are valid in both cases: nothing new is placed,
// and placed work stays.
func For(in Input) ([]Round, error) {
	if in.JobCount == nil {
		return everywhere(in)
	}
	nodes := occupancies(in)
	var err error
	if !in.Stopping {
		err = settle(nodes, int(*in.JobCount)-count(in.Finished), in)
	}
	return rounds(nodes), err
}

// everywhere is the plan without a JobCount. It lists only the nodes to leave out, so that the DaemonSet controller
// creates a worker on a new node without a change of the plan.
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

// settle places the remaining work on the eligible nodes.
func settle(nodes []*occupancy, left int, in Input) error {
	var healthy, unhealthy []*occupancy
	for _, node := range nodes {
		switch {
		case !node.eligible:
			continue
		case node.unhealthy:
			unhealthy = append(unhealthy, node)
		default:
			healthy = append(healthy, node)
		}
		left -= node.open.count()
	}
	left += withdraw(unhealthy, free(healthy)-max(left, 0))
	switch eligible := len(healthy) + len(unhealthy); {
	case left > 0 && eligible == 0:
		return ErrNoEligibleNodes
	case left > free(healthy)+free(unhealthy):
		return &TooManyRoundsError{JobCount: int(*in.JobCount), Nodes: eligible, Excess: left - free(healthy) - free(unhealthy)}
	case left > 0:
		first := min(left, free(healthy))
		add(healthy, first)
		add(unhealthy, left-first)
	case left+in.Unrecorded < 0:
		remove(nodes, -left-in.Unrecorded)
	}
	return nil
}

// free returns for how many workers there is room.
func free(nodes []*occupancy) int {
	free := 0
	for _, node := range nodes {
		free += v1alpha1.MaxRounds - node.taken().count()
	}
	return free
}

// withdraw removes work that no kubelet has accepted from nodes, as much as there is room for elsewhere, and returns how
// much it was.
func withdraw(nodes []*occupancy, room int) int {
	withdrawn := 0
	for _, node := range slices.Backward(nodes) {
		for withdrawn < room && node.open&^node.takenUp != 0 {
			node.open &^= (node.open &^ node.takenUp).highest()
			withdrawn++
		}
	}
	return withdrawn
}

// add places a number of workers, each on a node with the fewest. The caller makes sure that there is room.
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

// remove is the reverse of add. It removes only unfinished work.
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

// rounds collects the plan from the nodes, which are sorted by name.
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
