package plan

import (
	"fmt"
	"testing"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// The largest Goop on 5,000 nodes, at several points of its lifetime.
func BenchmarkFor(b *testing.B) {
	const nodes = 5000
	var eligible []string
	for node := range nodes {
		eligible = append(eligible, fmt.Sprintf("node-%05d", node))
	}
	fresh := Input{JobCount: new(int32(nodes * v1alpha1.MaxRounds)), Eligible: eligible}
	rounds, err := For(fresh)
	if err != nil {
		b.Fatal(err)
	}
	placed := placesOf(rounds)
	running := fresh
	running.Placed = placed
	half := running
	half.JobCount = new(*fresh.JobCount / 2)
	half.Placed, half.Finished = map[Place]bool{}, map[Place]bool{}
	for place := range placed {
		if place.Round < v1alpha1.MaxRounds/2 {
			half.Placed[place] = true
			half.Finished[place] = place.Round%2 == 0
		}
	}
	half.Kept = half.Finished
	left := half
	left.Eligible = eligible[nodes/2:]
	for _, c := range []struct {
		name string
		in   Input
	}{{"fresh", fresh}, {"unchanged", running}, {"half finished", half}, {"half the nodes left", left}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				rounds, err := For(c.in)
				if err != nil {
					b.Fatal(err)
				}
				if len(rounds) == 0 {
					b.Fatal("nothing is planned")
				}
			}
		})
	}
}
