package controller

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"

	"example.com/workbook/04-goop/internal/plan"
)

// Rounds lose nodes before others gain some, so that no worker is on two nodes.
func TestChanges(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	deleted := &appsv1.DaemonSet{}
	deletedDaemonSet(deleted)
	seen := &observation{
		rounds: map[int]*appsv1.DaemonSet{0: {}, 1: {}, 2: {}, 4: {}, 5: {}, 6: deleted},
		placed: map[int]plan.Round{
			0: {Nodes: []string{"a", "b"}}, 1: {Number: 1, Nodes: []string{"a"}}, 2: {Number: 2, Nodes: []string{"a", "b"}},
			4: {Number: 4, Nodes: []string{"a"}}, 5: {Number: 5}, 6: {Number: 6, Nodes: []string{"a"}},
		},
		plan: []plan.Round{
			{Number: 0, Nodes: []string{"a", "b"}}, {Number: 1, Nodes: []string{"a", "b"}}, {Number: 2, Nodes: []string{"b", "c"}},
			{Number: 3, Nodes: []string{"a"}},
		},
	}
	lose, gain, missing := changes(seen)
	numbers := func(rounds []plan.Round) (all []int) {
		for _, round := range rounds {
			all = append(all, round.Number)
		}
		return all
	}
	g.Expect(numbers(lose)).To(Equal([]int{2, 4}), "one node for another, not planned")
	g.Expect(numbers(gain)).To(Equal([]int{1}))
	g.Expect(numbers(missing)).To(Equal([]int{3}))
	g.Expect(lose[0].Nodes).To(Equal([]string{"b"}), "it gains nodes later")
	g.Expect(lose[1].Nodes).To(BeEmpty())
}

func deletedDaemonSet(daemonSet *appsv1.DaemonSet) {
	pod := aPod(isTerminating)
	daemonSet.DeletionTimestamp = pod.DeletionTimestamp
}

func TestGains(t *testing.T) {
	t.Parallel()
	all, allBut := plan.Round{Everywhere: true}, plan.Round{Everywhere: true, Nodes: []string{"a", "b"}}
	none, some := plan.Round{}, plan.Round{Nodes: []string{"a", "c"}}
	for name, test := range map[string]struct {
		before, after plan.Round
		want          bool
	}{
		"the same":               {some, some, true},
		"more":                   {some, plan.Round{Nodes: []string{"a", "b", "c", "d"}}, true},
		"less":                   {some, plan.Round{Nodes: []string{"a"}}, false},
		"others":                 {some, plan.Round{Nodes: []string{"a", "b"}}, false},
		"all from none":          {none, all, true},
		"all but some from none": {none, allBut, true},
		"all but some from some": {some, allBut, false},
		"all but others":         {plan.Round{Nodes: []string{"c"}}, allBut, true},
		"fewer left out":         {allBut, plan.Round{Everywhere: true, Nodes: []string{"b"}}, true},
		"more left out":          {all, allBut, false},
		"a list from all":        {all, some, false},
		"none from some":         {some, none, false},
	} {
		NewWithT(t).Expect(keepsNodes(test.before, test.after)).To(Equal(test.want), name)
	}
}
