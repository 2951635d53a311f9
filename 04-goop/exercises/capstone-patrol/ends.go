package patrol

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/workbook/04-goop/exercises/internal/patrols"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// cordons checks that the operator and administrators respect each other.
func cordons(t *check.T, entry Entry) {
	t.Behaviour("a node that an administrator has cordoned is done, and stays cordoned", func(b *check.B) {
		c := newCluster(b, entry)
		c.cordon("b")
		c.start()
		c.patrol("p", nil)
		c.complete("p", "a Succeeded", "b Succeeded", "c Succeeded")
	})
	t.Behaviour("a node that an administrator cordons just before the operator does stays cordoned", func(b *check.B) {
		c := newCluster(b, entry)
		done := false
		c.intercept(func(request kube.Request) error {
			if !done && kube.Writes(request) && request.Resource == "nodes" {
				done = true
				c.cordon(request.Name)
			}
			return nil
		})
		c.start()
		c.patrol("p", nil)
		c.complete("p", "a Succeeded", "b Succeeded", "c Succeeded")
	})
	t.Behaviour("a node that an administrator uncordons while it has its turn is not cordoned again", func(b *check.B) {
		c := started(b, entry)
		c.uncordon("a")
		c.touch("a", 3)
		// Once the Patrol has reported about it, the operator has looked at the node.
		c.suspend(true)
		c.is(patrols.ReasonSuspended)
		if c.getNode("a").Spec.Unschedulable {
			b.Fatalf("an administrator has uncordoned the node, and it is cordoned again")
		}
		c.suspend(false)
		c.let("a")
		c.complete("p", "a Succeeded", "b Succeeded", "c Succeeded")
	})
	t.Behaviour("a node whose annotation an administrator removes stays cordoned", func(b *check.B) {
		c := started(b, entry)
		c.mu.Lock()
		c.cordons["a"] = true
		c.mu.Unlock()
		c.changeNode("a", "the annotation is removed", func(node *corev1.Node) {
			delete(node.Annotations, patrols.AnnotationCordoned)
		})
		c.let("a")
		c.complete("p", "a Succeeded", "b Succeeded", "c Succeeded")
	})
}

// ends checks failures, the end, and what is before it.
func ends(t *check.T, entry Entry) {
	t.Behaviour("the command may fail on as many nodes as maxFailures says", func(b *check.B) {
		c := newCluster(b, entry)
		c.failing["a"], c.failing["c"] = true, true
		c.start()
		c.patrol("p", func(patrol *patrols.Patrol) { patrol.Spec.MaxFailures = 2 })
		c.complete("p", "a Failed", "b Succeeded", "c Failed")
	})
	t.Behaviour("with one more failure it has failed, nothing is cordoned, and no other node is begun", func(b *check.B) {
		c := newCluster(b, entry)
		c.failing["a"], c.failing["b"] = true, true
		c.start()
		c.patrol("p", func(patrol *patrols.Patrol) { patrol.Spec.MaxFailures = 1 })
		c.failed("a Failed", "b Failed")
		c.order("a", "b")
	})
	t.Behaviour("a Job that is deleted before its result is known has failed, and is not created again", func(b *check.B) {
		c := started(b, entry)
		c.change("p", "maxFailures 1", func(patrol *patrols.Patrol) { patrol.Spec.MaxFailures = 1 })
		c.removeJob()
		c.complete("p", "a Failed", "b Succeeded", "c Succeeded")
		c.order("a", "b", "c")
	})
	t.Behaviour("that is so, too, if the operator does not run when the Job is deleted", func(b *check.B) {
		c := started(b, entry)
		c.operator.Stop()
		c.removeJob()
		c.start()
		c.failed("a Failed")
		c.order("a")
	})
	t.Behaviour("while it is suspended no node is begun, and the one that has its turn is done", func(b *check.B) {
		c := started(b, entry)
		c.is(patrols.ReasonRunning)
		c.suspend(true)
		c.is(patrols.ReasonSuspended)
		c.let("a")
		c.eventually(func() string {
			if !slices.Equal(results(c.get("p")), []string{"a Succeeded"}) || c.getNode("a").Spec.Unschedulable {
				return "the Patrol is suspended, and the node that has its turn is not done and uncordoned"
			}
			return ""
		})
		c.settle()
		c.order("a")
		c.uncordonedAll("")
		c.suspend(false)
		c.complete("p", "a Succeeded", "b Succeeded", "c Succeeded")
	})
}

// lowered checks a budget that is exceeded while a node has its turn.
func lowered(t *check.T, entry Entry) {
	t.Behaviour("a budget that is lowered while a node has its turn ends the Patrol when that is done", func(b *check.B) {
		c := newCluster(b, entry)
		c.failing["a"] = true
		c.hold("b")
		c.start()
		c.patrol("p", func(patrol *patrols.Patrol) { patrol.Spec.MaxFailures = 1 })
		c.running("b")
		c.change("p", "maxFailures 0", func(patrol *patrols.Patrol) { patrol.Spec.MaxFailures = 0 })
		c.eventually(func() string {
			if c.report("p", patrols.ConditionFailed, metav1.ConditionTrue, patrols.ReasonBudgetExceeded) == "" {
				b.Fatalf("a node has its turn, and the end of the Patrol is reported")
			}
			return c.report("p", patrols.ConditionComplete, metav1.ConditionFalse, patrols.ReasonRunning)
		})
		c.let("b")
		c.failed("a Failed", "b Succeeded")
		c.order("a", "b")
	})
}

// settle waits until another Patrol is complete, which selects another node: then the operator has looked at p, too.
func (c *cluster) settle() {
	c.patrol("marker", func(patrol *patrols.Patrol) {
		patrol.Spec.NodeSelector = map[string]string{"kubernetes.io/os": "marker"}
	})
	c.node("marker", func(node *corev1.Node) { node.Labels = map[string]string{"kubernetes.io/os": "marker"} })
	c.complete("marker", "marker Succeeded")
	c.begun = slices.DeleteFunc(c.begun, func(name string) bool { return name == "marker" })
}

// latches checks that a Patrol that has ended stays as it is.
func latches(t *check.T, entry Entry) {
	t.Behaviour("after the end nothing begins, whatever joins, is raised, or is deleted, and not after a restart", func(b *check.B) {
		c := newCluster(b, entry)
		c.failing["c"] = true
		c.start()
		c.patrol("p", func(patrol *patrols.Patrol) { patrol.Spec.MaxFailures = 1 })
		c.complete("p", "a Succeeded", "b Succeeded", "c Failed")
		c.patrol("q", nil)
		c.eventually(func() string { return c.report("q", patrols.ConditionFailed, "True", patrols.ReasonBudgetExceeded) })
		begun := len(c.begun)
		for _, name := range []string{"p", "q"} {
			c.change(name, "maxFailures 5", func(patrol *patrols.Patrol) { patrol.Spec.MaxFailures = 5 })
		}
		c.removeJob()
		c.node("late", priority("5"))
		c.operator.Stop()
		c.start()
		c.settle()
		if len(c.begun) > begun {
			b.Fatalf("both Patrols have ended, and the command begins on another node")
		}
		c.uncordonedAll("")
	})
}

// deletions checks what becomes of a Patrol that is deleted.
func deletions(t *check.T, entry Entry) {
	const other = "example.com/audit"
	t.Behaviour("when it is deleted, its Job is deleted, the node is uncordoned, and finalizers of others stay", func(b *check.B) {
		c := newCluster(b, entry)
		c.hold("a")
		c.start()
		c.patrol("p", func(patrol *patrols.Patrol) { patrol.Finalizers = []string{other} })
		c.running("a")
		c.remove("p")
		c.eventually(func() string {
			switch patrol := c.get("p"); {
			case patrol == nil || !slices.Contains(patrol.Finalizers, other):
				b.Fatalf("the finalizer of another controller was removed")
			case c.job() != nil:
				return "the Patrol was deleted, and the command still runs"
			case c.getNode("a").Spec.Unschedulable:
				return "the Patrol was deleted, and the node is still cordoned"
			case len(patrol.Finalizers) > 1:
				return "the Patrol was deleted, nothing is left to be done for it, and it has a finalizer of the operator"
			}
			return ""
		})
		c.settle()
		c.order("a")
		c.change("p", "the finalizer of the other controller is removed", func(patrol *patrols.Patrol) { patrol.Finalizers = nil })
		c.remove("marker")
		c.gone()
	})
	t.Behaviour("a node that an administrator has cordoned stays cordoned when the Patrol is deleted", func(b *check.B) {
		c := newCluster(b, entry)
		c.cordon("a")
		c.hold("a")
		c.start()
		c.patrol("p", nil)
		c.running("a")
		c.remove("p")
		c.gone()
	})
	t.Behaviour("a Patrol that has ended is deleted, with its Jobs", func(b *check.B) {
		c := newCluster(b, entry)
		c.start()
		c.patrol("p", nil)
		c.complete("p", "a Succeeded", "b Succeeded", "c Succeeded")
		c.remove("p")
		c.gone()
	})
}

// earlier checks that a Patrol is not mistaken for an earlier one of the same name.
func earlier(t *check.T, entry Entry) {
	t.Behaviour("a Patrol of the same name that is created later has nothing of the earlier one", func(b *check.B) {
		c := newCluster(b, entry)
		c.start()
		c.patrol("p", nil)
		c.complete("p", "a Succeeded", "b Succeeded", "c Succeeded")
		// The garbage collector is late: the Jobs of the earlier one are still there.
		left, before := c.jobs(), len(c.process.Wire.Requests("create"))
		c.remove("p")
		c.eventually(func() string {
			if c.get("p") != nil {
				return "the Patrol was deleted, and is still there"
			}
			return ""
		})
		c.patrol("p", nil)
		// An operator may also try again until the names of the Jobs are free.
		c.eventually(func() string {
			if len(c.begun) == 3 && len(c.get("p").Status.Nodes) > 0 {
				b.Fatalf("the command has not begun for the later Patrol, and a node is done")
			}
			if len(c.begun) == 3 && len(c.process.Wire.Requests("create")) < before+3 {
				return "the later Patrol is not begun"
			}
			return ""
		})
		b.Event("the garbage collector deletes the Jobs of the earlier Patrol")
		for i := range left {
			c.deleteJob(&left[i])
		}
		c.complete("p", "a Succeeded", "b Succeeded", "c Succeeded")
		c.order("a", "b", "c", "a", "b", "c")
	})
}
