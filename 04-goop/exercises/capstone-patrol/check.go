// Package patrol is the capstone of stage 4: a command on nodes, on one after the other, and a kubectl plugin.
package patrol

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/exercises/internal/patrols"
	"example.com/workbook/shared/exercise/check"
)

// Entry is what the reader writes.
type Entry = patrols.Programs

// Check plays users, administrators, nodes and faults, and looks at the nodes and at where the command runs.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("nodes are cordoned, the command runs, and they are uncordoned, one after the other", func(b *check.B) {
		c := newCluster(b, work.Entry)
		c.start()
		c.patrol("p", nil)
		c.complete("p", "a Succeeded", "b Succeeded", "c Succeeded")
		c.order("a", "b", "c")
	})
	if ok {
		for _, behaviours := range []func(*check.T, Entry){
			orders, nodes, deselected, cordons, ends, latches, lowered, deletions, earlier, faults, crashes,
			caches,
		} {
			behaviours(t, work.Entry)
		}
	}
	plugins(t, work.Entry)
}

// started is a cluster with an operator and a Patrol, whose command runs on the node a until that is let.
func started(b *check.B, entry Entry) *cluster {
	c := newCluster(b, entry)
	c.hold("a")
	c.start()
	c.patrol("p", nil)
	c.running("a")
	return c
}

// orders checks which nodes are done, in which order, and with what.
func orders(t *check.T, entry Entry) {
	t.Behaviour("a Job runs the command in the image, on its node, for its Patrol", func(b *check.B) {
		c := started(b, entry)
		job, patrol := c.job(), c.get("p")
		spec := job.Spec.Template.Spec
		switch {
		case !metav1.IsControlledBy(job, patrol):
			b.Fatalf("the Patrol does not control the Job")
		case len(spec.Containers) != 1 || spec.Containers[0].Image != patrol.Spec.Image:
			b.Fatalf("the Job should have one container, with the image of the Patrol")
		case !slices.Equal(spec.Containers[0].Command, patrol.Spec.Command):
			b.Fatalf("the command of the Job is %q, and should be %q", spec.Containers[0].Command, patrol.Spec.Command)
		}
		c.let("a")
		c.complete("p", "a Succeeded", "b Succeeded", "c Succeeded")
	})
	t.Behaviour("the highest priority comes first, then the name", func(b *check.B) {
		c := newCluster(b, entry)
		c.changeNode("a", "priority -5", priority("-5"))
		c.changeNode("c", "priority 9", priority("9"))
		c.node("d", priority("10"))
		c.node("e", priority("high"))
		c.start()
		c.patrol("p", nil)
		c.complete("p", "d Succeeded", "c Succeeded", "b Succeeded", "e Succeeded", "a Succeeded")
		c.order("d", "c", "b", "e", "a")
	})
	t.Behaviour("nodes that join late are done, in the order of priorities", func(b *check.B) {
		c := started(b, entry)
		c.node("z", priority("1"))
		c.node("late", nil)
		c.let("a")
		c.complete("p", "a Succeeded", "z Succeeded", "b Succeeded", "c Succeeded", "late Succeeded")
	})
	t.Behaviour("a priority that changes while a node has its turn decides what is next", func(b *check.B) {
		c := started(b, entry)
		c.changeNode("c", "priority 1", priority("1"))
		c.let("a")
		c.complete("p", "a Succeeded", "c Succeeded", "b Succeeded")
		c.order("a", "c", "b")
	})
	t.Behaviour("a Patrol that selects no node is complete, and without a selector all nodes are done", func(b *check.B) {
		c := newCluster(b, entry)
		c.start()
		c.patrol("none", func(patrol *patrols.Patrol) { patrol.Spec.NodeSelector = map[string]string{"example.com/none": "yes"} })
		c.complete("none")
		c.patrol("all", func(patrol *patrols.Patrol) { patrol.Spec.NodeSelector = nil })
		c.complete("all", "a Succeeded", "b Succeeded", "c Succeeded", "other Succeeded")
	})
}

// nodes checks what becomes of nodes that change and leave.
func nodes(t *check.T, entry Entry) {
	t.Behaviour("a node that is not selected any more while it has its turn is done, one that waits for it is not", func(b *check.B) {
		c := started(b, entry)
		for _, name := range []string{"a", "b"} {
			c.changeNode(name, "it is not selected any more", func(node *corev1.Node) { node.Labels = nil })
		}
		c.let("a")
		c.complete("p", "a Succeeded", "c Succeeded")
		c.order("a", "c")
	})
	t.Behaviour("a node that leaves while it has its turn is not waited for, and its Job is deleted", func(b *check.B) {
		c := started(b, entry)
		c.leave("a")
		c.complete("p", "b Succeeded", "c Succeeded")
		if c.job() != nil {
			b.Fatalf("the node is gone, and its Job is still there")
		}
	})
	t.Behaviour("a node that takes the name of one that has left is another one", func(b *check.B) {
		c := started(b, entry)
		c.leave("a")
		c.node("a", priority("-1"))
		c.hold("c")
		c.let("a")
		c.running("c")
		c.leave("b")
		c.node("b", priority("-2"))
		c.let("c")
		c.complete("p", "b Succeeded", "c Succeeded", "a Succeeded", "b Succeeded")
		c.order("a", "b", "c", "a", "b")
	})
	t.Behaviour("when the node that is done leaves, its result stays, and nothing is done again", func(b *check.B) {
		c := newCluster(b, entry)
		c.hold("b")
		c.start()
		c.patrol("p", nil)
		c.running("b")
		c.leave("a")
		c.let("b")
		c.complete("p", "a Succeeded", "b Succeeded", "c Succeeded")
	})
	t.Behaviour("two Patrols do not run on a node at the same time, and neither waits where it need not", func(b *check.B) {
		c := started(b, entry)
		c.hold("b")
		c.patrol("q", nil)
		c.running("b")
		c.let("b")
		c.eventually(func() string {
			if patrol := c.get("q"); len(patrol.Status.Nodes) < 2 {
				return "another Patrol has one node under way, and this one does not go on with the others"
			}
			return ""
		})
		c.let("a")
		c.complete("p", "a Succeeded", "b Succeeded", "c Succeeded")
		c.complete("q", "b Succeeded", "c Succeeded", "a Succeeded")
	})
}

// deselected checks that a node that has its turn is done, whatever is selected.
func deselected(t *check.T, entry Entry) {
	t.Behaviour("the Patrol is not complete while a node has its turn that is not selected any more", func(b *check.B) {
		c := started(b, entry)
		c.leave("b")
		c.leave("c")
		c.changeNode("a", "it is not selected any more", func(node *corev1.Node) { node.Labels = nil })
		c.patrol("later", func(patrol *patrols.Patrol) { patrol.Spec.NodeSelector = map[string]string{"example.com/none": "yes"} })
		// Once the later one is complete, the operator has looked at the earlier one, too.
		c.complete("later")
		c.let("a")
		c.complete("p", "a Succeeded")
	})
}
