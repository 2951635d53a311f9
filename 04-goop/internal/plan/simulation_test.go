package plan

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// simulation is a Goop on nodes that join and leave, as seen by its plans.
type simulation struct {
	in Input
	// away are nodes that do not exist at the moment. Workers there were lost with them.
	away []string
}

func newSimulation(t *rapid.T) *simulation {
	nodes := rapid.IntRange(1, 8).Draw(t, "nodes")
	jobs := rapid.IntRange(1, 5*nodes).Draw(t, "jobs")
	return &simulation{
		in:   Input{JobCount: new(int32(jobs)), Eligible: names(nodes), Finished: map[Place]bool{}, Kept: map[Place]bool{}},
		away: []string{"another-0", "zebra-0"},
	}
}

// replan applies the plan to the DaemonSets, and returns newly placed workers.
func (l *simulation) replan(t *rapid.T) map[Place]bool {
	t.Helper()
	places := expectSound(t, l.in)
	added := without(places, l.in.Placed)
	for place := range l.in.Placed {
		if slices.Contains(l.in.Eligible, place.Node) && !l.in.Finished[place] && !l.in.Stopping && !places[place] {
			t.Fatalf("%v was moved", place)
		}
	}
	l.in.Placed = places
	return added
}

// open returns the places of unfinished workers on some nodes; nil: on all.
func (l *simulation) open(nodes ...string) map[Place]bool {
	open := maps.Clone(l.in.Placed)
	maps.DeleteFunc(open, func(place Place, _ bool) bool {
		return l.in.Finished[place] || nodes != nil && !slices.Contains(nodes, place.Node)
	})
	return open
}

func (l *simulation) finish(t *rapid.T) {
	open := sorted(l.open())
	if len(open) == 0 {
		t.Skip()
	}
	place := rapid.SampledFrom(open).Draw(t, "place")
	l.in.Finished[place], l.in.Kept[place] = true, true
	if added := l.replan(t); len(added) != 0 {
		t.Fatalf("%v has finished, and %v were added", place, added)
	}
}

func (l *simulation) podGone(t *rapid.T) {
	if len(l.in.Kept) == 0 {
		t.Skip()
	}
	place := rapid.SampledFrom(sorted(l.in.Kept)).Draw(t, "place")
	delete(l.in.Kept, place)
	if added := l.replan(t); len(added) != 0 || l.in.Placed[place] {
		t.Fatalf("the pod of %v was deleted, and %v were added, itself: %t", place, added, l.in.Placed[place])
	}
}

func (l *simulation) leave(t *rapid.T) {
	if len(l.in.Eligible) < 2 {
		t.Skip()
	}
	node := rapid.SampledFrom(l.in.Eligible).Draw(t, "node")
	l.in.Eligible = slices.DeleteFunc(slices.Clone(l.in.Eligible), func(name string) bool { return name == node })
	l.away = append(l.away, node)
	maps.DeleteFunc(l.in.Kept, func(place Place, _ bool) bool { return place.Node == node })
	lost := len(l.open(node))
	if l.in.Stopping || int(*l.in.JobCount) > v1alpha1.MaxRounds*len(l.in.Eligible) {
		l.replan(t)
		return
	}
	if added := l.replan(t); len(added) != lost {
		t.Fatalf("%s has left with %d unfinished, and %v were added", node, lost, added)
	}
}

func (l *simulation) join(t *rapid.T) {
	if len(l.away) == 0 {
		t.Skip()
	}
	node := rapid.SampledFrom(l.away).Draw(t, "node")
	l.away = slices.DeleteFunc(slices.Clone(l.away), func(name string) bool { return name == node })
	l.in.Eligible = append(l.in.Eligible, node)
	unplaced := int(*l.in.JobCount) - count(l.in.Finished) - len(l.open())
	if added := l.replan(t); !l.in.Stopping && len(added) != unplaced {
		t.Fatalf("%s has joined, %d had no place, and %v were added", node, unplaced, added)
	}
}

func (l *simulation) suspendOrResume(t *rapid.T) {
	l.in.Stopping = !l.in.Stopping
	added := l.replan(t)
	if l.in.Stopping && !maps.Equal(l.in.Placed, l.in.Kept) {
		t.Fatalf("suspended, %v stays, and %v is kept", l.in.Placed, l.in.Kept)
	}
	for place := range added {
		if l.in.Finished[place] {
			t.Fatalf("%v is recorded, and runs again on resume", place)
		}
	}
}

func TestSimulation(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := newSimulation(t)
		l.replan(t)
		t.Repeat(map[string]func(*rapid.T){
			"a worker finishes":        l.finish,
			"a finished pod goes":      l.podGone,
			"a node leaves":            l.leave,
			"a node joins":             l.join,
			"it is suspended, resumed": l.suspendOrResume,
			"nothing happens": func(t *rapid.T) {
				if added := l.replan(t); len(added) != 0 {
					t.Fatalf("%v were added", added)
				}
			},
		})
	})
}

// A new plan differs by at most one worker between nodes, and stays so while nodes leave, whatever has finished
// meanwhile.
func TestEven(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := newSimulation(t)
		for step := 0; ; step++ {
			l.replan(t)
			load := map[string]int{}
			for _, node := range l.in.Eligible {
				load[node] = 0
			}
			for place := range all(l.in.Placed, l.in.Finished) {
				if slices.Contains(l.in.Eligible, place.Node) {
					load[place.Node]++
				}
			}
			least, most := slices.Min(slices.Collect(maps.Values(load))), slices.Max(slices.Collect(maps.Values(load)))
			if most-least > 1 {
				t.Fatalf("after %d nodes have left, one has %d workers and one %d: %v", step, least, most, l.in.Placed)
			}
			if len(l.in.Eligible) == 1 {
				return
			}
			l.in.Finished = all(l.in.Finished, drawPlaces(t, l.open(), "finished "))
			gone := rapid.IntRange(0, len(l.in.Eligible)-1).Draw(t, "gone")
			l.in.Eligible = slices.Delete(slices.Clone(l.in.Eligible), gone, gone+1)
			if int(*l.in.JobCount) > v1alpha1.MaxRounds*len(l.in.Eligible) {
				return
			}
		}
	})
}

// DaemonSets are created one by one. Whichever exist when the operator crashes, it continues with the same plan.
func TestGoesOnAfterACrash(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := newSimulation(t)
		l.replan(t)
		whole := l.in.Placed
		kept := rapid.SliceOfN(rapid.Bool(), v1alpha1.MaxRounds, v1alpha1.MaxRounds).Draw(t, "made")
		l.in.Placed = maps.Clone(whole)
		maps.DeleteFunc(l.in.Placed, func(place Place, _ bool) bool { return !kept[place.Round] })
		l.replan(t)
		if !maps.Equal(l.in.Placed, whole) {
			t.Fatalf("it continues with %v, and began with %v", l.in.Placed, whole)
		}
	})
}

// Without a JobCount each eligible node has one worker, except those that have finished.
func TestEverywhere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		in.JobCount = nil
		rounds, err := For(in)
		if (err != nil) != (len(in.Eligible) == 0 && !in.Stopping) {
			t.Fatalf("of %v: %v", in.Eligible, err)
		}
		if !in.Stopping && len(rounds) != 1 || len(rounds) > 1 || len(rounds) == 1 && rounds[0].Everywhere == in.Stopping {
			t.Fatalf("stopping is %t: %v", in.Stopping, rounds)
		}
		for _, node := range slices.Concat(names(4), []string{"new"}) {
			place := Place{Node: node}
			listed := len(rounds) == 1 && slices.Contains(rounds[0].Nodes, node)
			matches, want := listed == in.Stopping, !in.Finished[place] && !in.Stopping || in.Finished[place] && in.Kept[place]
			if len(rounds) == 0 {
				matches = false
			}
			if matches != want {
				t.Fatalf("%s is matched: %t, want %t: %v", node, matches, want, rounds)
			}
		}
	})
}
