package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/internal/plan"
)

// deleteNode deletes a node and its pods, without running a controller.
func (f *goopTestEnv) deleteNode(short string) {
	f.Expect(f.client.Delete(f.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: f.node(short)}})).To(Succeed())
	for _, pod := range f.podList() {
		if pod.Spec.NodeName == f.node(short) {
			f.removePod(&pod)
		}
	}
}

// nodesOf returns the nodes of a DaemonSet.
func (f *goopTestEnv) nodesOf(daemonSet string) []string {
	return roundOf(0, f.daemonSets()[daemonSet]).Nodes
}

// A node is deleted, and the cache does not have the end of the work yet. The work does not begin on another node.
func TestNothingMovesAfterTheEnd(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b")
	f.create(workers(1), deadline(60))
	f.runs("a/0")
	before, now := f.goop(), f.clock.Now()
	f.clock.Step(time.Hour)
	for !f.goop().Ended() {
		f.reconciles(1)
	}
	f.deleteNode("a")
	f.freezeCache(before)
	f.clock.SetTime(now)
	for range 3 {
		_, _ = f.reconcile()
		f.simulateDaemonSets()
	}
	f.Expect(f.pods).To(Equal(map[string]int{"a/0": 1}))
	f.Expect(f.nodesOf("job-0")).To(BeEmpty(), "the round loses its nodes nevertheless")
}

// A round loses a node and would gain others, while a worker is still terminating because a user has deleted its
// DaemonSet. No two copies of it run.
func TestNothingMovesBesideAWorkerThatEnds(t *testing.T) {
	t.Parallel()
	f := newGoopTestEnv(t, "a", "b", "c")
	f.create(workers(4))
	f.runs("a/0", "a/1", "b/0", "c/0")
	f.Expect(f.client.Delete(f.ctx, f.daemonSets()["job-1"])).To(Succeed())
	f.deleteNode("c")
	f.join("d")
	f.join("e")
	f.clock.Step(2 * writeInterval)
	f.reconciles(4)
	f.Expect(f.nodesOf("job-0")).To(Equal([]string{f.node("a"), f.node("b")}))
	f.removePod(f.pod("a/1"))
	f.settle()
	f.Expect(f.places()).To(Equal([]string{"a/0", "b/0", "d/0", "e/0"}))
}

func TestCommon(t *testing.T) {
	t.Parallel()
	all, allBut := plan.Round{Everywhere: true}, plan.Round{Everywhere: true, Nodes: []string{"a", "b"}}
	none, some := plan.Round{}, plan.Round{Nodes: []string{"a", "c"}}
	for name, test := range map[string]struct{ before, after, want plan.Round }{
		"others":               {some, plan.Round{Nodes: []string{"a", "b"}}, plan.Round{Nodes: []string{"a"}}},
		"nothing in common":    {some, plan.Round{Nodes: []string{"b"}}, none},
		"all but some":         {some, allBut, plan.Round{Nodes: []string{"c"}}},
		"a list from all but":  {allBut, some, plan.Round{Nodes: []string{"c"}}},
		"a list from all":      {all, some, some},
		"none from all":        {all, none, none},
		"others left out":      {allBut, plan.Round{Everywhere: true, Nodes: []string{"b", "c"}}, plan.Round{Everywhere: true, Nodes: []string{"a", "b", "c"}}},
		"more are left out":    {all, allBut, allBut},
		"as many are left out": {allBut, allBut, allBut},
	} {
		test.want.Number, test.after.Number = 7, 7
		NewWithT(t).Expect(intersection(test.before, test.after)).To(Equal(test.want), name)
	}
}
