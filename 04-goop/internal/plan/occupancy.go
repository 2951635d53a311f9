package plan

import (
	"cmp"
	"iter"
	"maps"
	"math/bits"
	"slices"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// roundSet is a set of rounds on one node, with one bit for each round.
type roundSet uint32

// This constant is negative, and does not compile, unless a roundSet has as many bits as there are rounds.
const _ = uint(v1alpha1.MaxRounds-32) + uint(32-v1alpha1.MaxRounds)

func (s roundSet) count() int           { return bits.OnesCount32(uint32(s)) }
func (s roundSet) lowestFree() roundSet { return ^s & (s + 1) }
func (s roundSet) highest() roundSet    { return 1 << (bits.Len32(uint32(s)) - 1) }

func (s roundSet) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for ; s != 0; s &= s - 1 {
			if !yield(bits.TrailingZeros32(uint32(s))) {
				return
			}
		}
	}
}

// occupancy is the input of the plan for one node.
type occupancy struct {
	name                string
	eligible, unhealthy bool
	// finished work counts when work is spread, and its rounds are not free.
	finished roundSet
	// open work is placed here and has not finished.
	open roundSet
	// takenUp are the rounds whose pods a kubelet has accepted.
	takenUp roundSet
	// kept rounds are finished, and their pods stay.
	kept roundSet
}

func (o *occupancy) taken() roundSet { return o.finished | o.open }

// occupancies returns the nodes of the input, sorted by name, with the work that stays on them.
func occupancies(in Input) []*occupancy {
	nodes := make(map[string]*occupancy, len(in.Eligible))
	at := func(name string) *occupancy {
		if nodes[name] == nil {
			nodes[name] = &occupancy{name: name}
		}
		return nodes[name]
	}
	for _, name := range in.Eligible {
		at(name).eligible, at(name).unhealthy = true, in.Unhealthy[name]
	}
	for place, finished := range in.Finished {
		if finished && valid(place) {
			at(place.Node).finished |= 1 << place.Round
		}
	}
	for place, placed := range in.Placed {
		if !placed || !valid(place) {
			continue
		}
		switch node := at(place.Node); {
		case node.finished&(1<<place.Round) == 0:
			if node.eligible && !in.Stopping {
				node.open |= 1 << place.Round
			}
			if in.TakenUp[place] {
				node.takenUp |= 1 << place.Round
			}
		// A recorded worker that is no longer placed is about to be deleted. If it were placed again, it could run again.
		case in.Kept[place]:
			node.kept |= 1 << place.Round
		}
	}
	return slices.SortedFunc(maps.Values(nodes), func(a, b *occupancy) int { return cmp.Compare(a.name, b.name) })
}

// valid reports whether the plan has such a round. DaemonSets of other rounds are not part of the plan.
func valid(place Place) bool { return place.Round >= 0 && place.Round < v1alpha1.MaxRounds }
