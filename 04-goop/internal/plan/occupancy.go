package plan

import (
	"cmp"
	"iter"
	"maps"
	"math/bits"
	"slices"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// roundSet is a set of the rounds of one node, a bit for each.
type roundSet uint32

// A constant that is negative, and so does not compile, if a roundSet has not as many bits as there are rounds.
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

// occupancy is what the plan knows of one node.
type occupancy struct {
	name     string
	eligible bool
	// finished work counts where work is spread, and its rounds are not free.
	finished roundSet
	// open work is placed here and not finished.
	open roundSet
	// kept rounds are finished, and their pods stay.
	kept roundSet
}

func (o *occupancy) taken() roundSet { return o.finished | o.open }

// occupancies are the nodes of in, sorted by name, with what stays on them.
func occupancies(in Input) []*occupancy {
	nodes := make(map[string]*occupancy, len(in.Eligible))
	at := func(name string) *occupancy {
		if nodes[name] == nil {
			nodes[name] = &occupancy{name: name}
		}
		return nodes[name]
	}
	for _, name := range in.Eligible {
		at(name).eligible = true
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
		// A recorded one that is not placed any more is about to go: placed again, it could run again.
		case in.Kept[place]:
			node.kept |= 1 << place.Round
		}
	}
	return slices.SortedFunc(maps.Values(nodes), func(a, b *occupancy) int { return cmp.Compare(a.name, b.name) })
}

// valid tells whether there is such a round. A DaemonSet of another is none of the plan's.
func valid(place Place) bool { return place.Round >= 0 && place.Round < v1alpha1.MaxRounds }
