package plan

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// names returns the names of n nodes.
func names(n int) []string {
	nodes := make([]string, n)
	for i := range nodes {
		nodes[i] = fmt.Sprintf("node-%d", i)
	}
	return nodes
}

// placesOf returns the places that rounds list.
func placesOf(rounds []Round) map[Place]bool {
	places := map[Place]bool{}
	for _, round := range rounds {
		for _, node := range round.Nodes {
			places[Place{node, round.Number}] = true
		}
	}
	return places
}

// drawPlaces draws a subset of places.
func drawPlaces(t *rapid.T, from map[Place]bool, label string) map[Place]bool {
	drawn := map[Place]bool{}
	for _, place := range sorted(from) {
		if rapid.Bool().Draw(t, fmt.Sprint(label, place)) {
			drawn[place] = true
		}
	}
	return drawn
}

func sorted(places map[Place]bool) []Place {
	return slices.SortedFunc(maps.Keys(places), func(a, b Place) int { return compare(a, b) })
}

func compare(a, b Place) int {
	if a.Node != b.Node {
		return slices.Compare([]string{a.Node}, []string{b.Node})
	}
	return a.Round - b.Round
}

// drawInput draws any input, including input that no simulation of a Goop produces. There are few nodes, so that their
// rounds run out.
func drawInput(t *rapid.T) Input {
	place := rapid.Custom(func(t *rapid.T) Place {
		return Place{rapid.SampledFrom(names(4)).Draw(t, "node"), rapid.IntRange(0, v1alpha1.MaxRounds-1).Draw(t, "round")}
	})
	places := rapid.MapOfN(place, rapid.Bool(), 0, 100)
	return Input{
		JobCount: new(rapid.Int32Range(1, 150).Draw(t, "jobs")),
		Eligible: rapid.SliceOfN(rapid.SampledFrom(names(4)), 0, 6).Draw(t, "eligible"),
		Placed:   places.Draw(t, "placed"), Finished: places.Draw(t, "finished"), Kept: places.Draw(t, "kept"),
		Stopping: rapid.IntRange(0, 4).Draw(t, "stopping") == 4,
	}
}

// expectSound checks properties of every plan, and returns its places.
func expectSound(t *rapid.T, in Input) map[Place]bool {
	t.Helper()
	rounds, err := For(in)
	expectRounds(t, rounds)
	places := placesOf(rounds)
	open := 0
	for place := range places {
		switch {
		case kept(in, place):
		case in.Finished[place]:
			t.Fatalf("%v is recorded, has no pod, and is placed", place)
		case in.Stopping || !slices.Contains(in.Eligible, place.Node):
			t.Fatalf("%v is placed, though stopping is %t, on one of %v", place, in.Stopping, in.Eligible)
		default:
			open++
		}
	}
	for place := range in.Placed {
		if kept(in, place) && !places[place] {
			t.Fatalf("%v has a pod that exists, and is not kept", place)
		}
	}
	left := max(0, int(*in.JobCount)-count(in.Finished))
	if err == nil && !in.Stopping && open != left {
		t.Fatalf("%d are placed, %d are left", open, left)
	}
	expectStable(t, in, rounds, err)
	return places
}

// kept reports whether a place is recorded, and stays because of its pod.
func kept(in Input, place Place) bool {
	return in.Finished[place] && in.Kept[place] && in.Placed[place]
}

// expectRounds checks that the rounds exist.
func expectRounds(t *rapid.T, rounds []Round) {
	t.Helper()
	if !slices.IsSortedFunc(rounds, func(a, b Round) int { return a.Number - b.Number }) {
		t.Fatalf("the rounds are not sorted: %v", rounds)
	}
	for _, round := range rounds {
		if round.Number < 0 || round.Number >= v1alpha1.MaxRounds || round.Everywhere || len(round.Nodes) == 0 || !slices.IsSorted(round.Nodes) {
			t.Fatalf("the round does not exist: %v", round)
		}
	}
}

// expectStable checks that the plan of a plan is the same, and that it does not depend on the order of the nodes.
func expectStable(t *rapid.T, in Input, rounds []Round, err error) {
	t.Helper()
	in.Eligible = rapid.Permutation(in.Eligible).Draw(t, "order")
	if again, errAgain := For(in); !reflect.DeepEqual(again, rounds) || !reflect.DeepEqual(errAgain, err) {
		t.Fatalf("the same in another order is %v, %v, and was %v, %v", again, errAgain, rounds, err)
	}
	in.Placed = placesOf(rounds)
	if again, errAgain := For(in); !reflect.DeepEqual(again, rounds) || !reflect.DeepEqual(errAgain, err) {
		t.Fatalf("applied to its own result it is %v, %v, and was %v, %v", again, errAgain, rounds, err)
	}
}

func TestEveryPlanIsSound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		expectSound(t, in)
		_, err := For(in)
		nodes := len(slices.Compact(slices.Sorted(slices.Values(in.Eligible))))
		var tooMany *TooManyRoundsError
		switch {
		case in.Stopping && err != nil:
			t.Fatalf("there is nothing to place, but the error is: %v", err)
		case errors.Is(err, ErrNoEligibleNodes) != (!in.Stopping && nodes == 0 && int(*in.JobCount) > count(in.Finished)):
			t.Fatalf("%d nodes are eligible, %d of %d workers have finished: %v", nodes, count(in.Finished), *in.JobCount, err)
		case errors.As(err, &tooMany) && int(*in.JobCount) <= v1alpha1.MaxRounds*nodes:
			t.Fatalf("%d workers fit on %d nodes, but the error is: %v", *in.JobCount, nodes, err)
		case errors.As(err, &tooMany) && (tooMany.Excess <= 0 || tooMany.Nodes != nodes):
			t.Fatalf("%+v, of %d nodes", *tooMany, nodes)
		}
	})
}

// Workers are added where the fewest are, and removed where the most are. A plan never does both.
func TestOnlyTheExtremesChange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		rounds, err := For(in)
		if in.Stopping || err != nil {
			t.Skip()
		}
		placed := placesOf(rounds)
		load := map[string]int{}
		for place := range all(placed, trueOf(in.Finished)) {
			load[place.Node]++
		}
		added := without(placed, in.Placed)
		for place := range added {
			for _, other := range in.Eligible {
				if load[place.Node] > load[other]+1 {
					t.Fatalf("%v was added though %s has only %d", place, other, load[other])
				}
			}
		}
		removed := without(without(trueOf(in.Placed), placed), in.Finished)
		maps.DeleteFunc(removed, func(place Place, _ bool) bool { return !slices.Contains(in.Eligible, place.Node) })
		for place := range removed {
			for other := range without(placed, in.Finished) {
				if load[other.Node] > load[place.Node]+1 {
					t.Fatalf("%v was removed though %s has %d", place, other.Node, load[other.Node])
				}
			}
		}
		if len(added) > 0 && len(removed) > 0 {
			t.Fatalf("%v was moved to %v", removed, added)
		}
	})
}

// without returns the places that are not among others.
func without(places, others map[Place]bool) map[Place]bool {
	rest := maps.Clone(places)
	maps.DeleteFunc(rest, func(place Place, _ bool) bool { return others[place] })
	return rest
}

// trueOf returns the places with the value true.
func trueOf(places map[Place]bool) map[Place]bool {
	found := maps.Clone(places)
	maps.DeleteFunc(found, func(_ Place, is bool) bool { return !is })
	return found
}

// roomOnHealthyNodes returns how many more workers healthy nodes can have.
func roomOnHealthyNodes(in Input, taken map[Place]bool) int {
	room := 0
	for _, node := range slices.Compact(slices.Sorted(slices.Values(in.Eligible))) {
		if in.Unhealthy[node] {
			continue
		}
		room += v1alpha1.MaxRounds
		for place := range taken {
			if place.Node == node {
				room--
			}
		}
	}
	return room
}

// Work on an unhealthy node was accepted there by a kubelet, or has no room on the healthy nodes.
func TestHealthyNodesComeFirst(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		in.Unhealthy = rapid.MapOf(rapid.SampledFrom(names(4)), rapid.Bool()).Draw(t, "unhealthy")
		in.TakenUp = drawPlaces(t, in.Placed, "taken up")
		placed := expectSound(t, in)
		if _, err := For(in); in.Stopping || err != nil {
			t.Skip()
		}
		room := roomOnHealthyNodes(in, all(placed, trueOf(in.Finished)))
		for place := range without(placed, in.Finished) {
			if in.Unhealthy[place.Node] && room > 0 && (!in.Placed[place] || !in.TakenUp[place]) {
				t.Fatalf("%v is placed, and healthy nodes have room for %d", place, room)
			}
		}
		open := without(trueOf(in.Placed), in.Finished)
		maps.DeleteFunc(open, func(place Place, _ bool) bool { return !slices.Contains(in.Eligible, place.Node) })
		for place := range open {
			if in.TakenUp[place] && !placed[place] && len(open) <= int(*in.JobCount)-count(in.Finished) {
				t.Fatalf("%v was taken up, and is moved", place)
			}
		}
	})
}
