package patrol

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/04-goop/exercises/internal/patrols"
)

// selected are the labels of the nodes that Patrols select.
var selected = map[string]string{"example.com/patrolled": "yes"}

// node creates a node.
func (c *cluster) node(name string, change func(*corev1.Node)) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: selected}}
	if change != nil {
		change(node)
	}
	c.b.Event("the node %s joins", name)
	c.must("creating a node", c.client.Create(c.b.Context(), node))
}

// priority is for node and changeNode.
func priority(value string) func(*corev1.Node) {
	return func(node *corev1.Node) {
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, patrols.AnnotationPriority, value)
	}
}

// getNode returns a node, or nil.
func (c *cluster) getNode(name string) *corev1.Node {
	node := &corev1.Node{}
	err := c.client.Get(c.b.Context(), client.ObjectKey{Name: name}, node)
	if apierrors.IsNotFound(err) {
		return nil
	}
	c.must("reading a node", err)
	return node
}

// changeNode changes a node, as an administrator.
func (c *cluster) changeNode(name, what string, change func(*corev1.Node)) {
	c.b.Event("an administrator changes the node %s: %s", name, what)
	c.must("changing a node", retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node := c.getNode(name)
		if node == nil {
			c.b.Fatalf("the node %s is not there any more", name)
		}
		change(node)
		return c.client.Update(c.b.Context(), node)
	}))
}

func (c *cluster) cordon(name string) {
	c.mu.Lock()
	c.cordons[name] = true
	c.mu.Unlock()
	c.changeNode(name, "cordon", func(node *corev1.Node) { node.Spec.Unschedulable = true })
}

func (c *cluster) uncordon(name string) {
	c.mu.Lock()
	c.uncordoned[name] = true
	c.mu.Unlock()
	c.changeNode(name, "uncordon", func(node *corev1.Node) { node.Spec.Unschedulable = false })
}

// touch changes what the operator has no interest in, some times.
func (c *cluster) touch(name string, times int) {
	for n := range times {
		c.changeNode(name, "a label", func(node *corev1.Node) {
			metav1.SetMetaDataLabel(&node.ObjectMeta, "example.com/rack", fmt.Sprintf("rack-%d", n))
		})
	}
}

// leave deletes a node.
func (c *cluster) leave(name string) {
	c.b.Event("the node %s leaves", name)
	c.must("deleting a node", c.client.Delete(c.b.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))
}

// patrol creates a Patrol, as a user.
func (c *cluster) patrol(name string, change func(*patrols.Patrol)) {
	patrol := &patrols.Patrol{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       patrols.PatrolSpec{NodeSelector: selected, Image: "example.com/tools:1", Command: []string{"fsck", "-A"}},
	}
	if change != nil {
		change(patrol)
	}
	c.b.Event("a user creates the Patrol %s", name)
	c.must("creating a Patrol", c.client.Create(c.b.Context(), patrol))
}

// get returns a Patrol, or nil.
func (c *cluster) get(name string) *patrols.Patrol {
	patrol := &patrols.Patrol{}
	err := c.client.Get(c.b.Context(), client.ObjectKey{Name: name}, patrol)
	if apierrors.IsNotFound(err) {
		return nil
	}
	c.must("reading a Patrol", err)
	return patrol
}

// change changes a Patrol, as a user.
func (c *cluster) change(name, what string, change func(*patrols.Patrol)) {
	c.b.Event("a user changes the Patrol %s: %s", name, what)
	c.must("changing a Patrol", retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		patrol := c.get(name)
		if patrol == nil {
			c.b.Fatalf("the Patrol %s is not there any more", name)
		}
		change(patrol)
		return c.client.Update(c.b.Context(), patrol)
	}))
}

func (c *cluster) suspend(suspend bool) {
	c.change("p", fmt.Sprintf("suspend %t", suspend), func(patrol *patrols.Patrol) { patrol.Spec.Suspend = suspend })
}

// remove deletes a Patrol, as a user.
func (c *cluster) remove(name string) {
	c.b.Event("a user deletes the Patrol %s", name)
	err := c.client.Delete(c.b.Context(), &patrols.Patrol{ObjectMeta: metav1.ObjectMeta{Name: name}})
	c.must("deleting a Patrol", err)
}

// report says what is wrong with a condition, or returns an empty string.
func (c *cluster) report(name, condition string, status metav1.ConditionStatus, reason string) string {
	patrol := c.get(name)
	if patrol == nil {
		return "the Patrol is not there"
	}
	got := apimeta.FindStatusCondition(patrol.Status.Conditions, condition)
	switch {
	case got == nil:
		return "the Patrol has no condition " + condition
	case got.Status != status || got.Reason != reason:
		return fmt.Sprintf("%s is %s, %s, and should be %s, %s", condition, got.Status, got.Reason, status, reason)
	case got.ObservedGeneration != patrol.Generation:
		return condition + " is not about the generation that the Patrol has"
	}
	return ""
}

// is waits until the Patrol p has not ended, for a reason.
func (c *cluster) is(reason string) {
	c.eventually(func() string { return c.report("p", patrols.ConditionComplete, metav1.ConditionFalse, reason) })
}

// complete waits until a Patrol is complete, with these results.
func (c *cluster) complete(name string, want ...string) {
	c.eventually(func() string {
		return c.report(name, patrols.ConditionComplete, metav1.ConditionTrue, patrols.ReasonDone)
	})
	c.ended(name, want)
}

// failed waits until the Patrol p has failed, with these results.
func (c *cluster) failed(want ...string) {
	c.eventually(func() string {
		return c.report("p", patrols.ConditionFailed, metav1.ConditionTrue, patrols.ReasonBudgetExceeded)
	})
	if text := c.report("p", patrols.ConditionComplete, metav1.ConditionFalse, patrols.ReasonBudgetExceeded); text != "" {
		c.b.Fatalf("%s", text)
	}
	c.ended("p", want)
}

func (c *cluster) ended(name string, want []string) {
	c.b.Event("the Patrol %s has ended", name)
	patrol := c.get(name)
	c.uncordonedAll(string(patrol.UID))
	if got := results(patrol); !slices.Equal(got, want) {
		c.b.Fatalf("the nodes of the status should be %q, and are %q", want, got)
	}
}

// uncordonedAll checks that no node is cordoned but by administrators, and other Patrols. Without a UID, there is none.
func (c *cluster) uncordonedAll(by string) {
	var nodes corev1.NodeList
	c.must("listing nodes", c.client.List(c.b.Context(), &nodes))
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, node := range nodes.Items {
		holder := node.Annotations[patrols.AnnotationCordoned]
		switch {
		case c.cordons[node.Name] && !node.Spec.Unschedulable:
			c.b.Fatalf("an administrator has cordoned the node %s, and it is not cordoned any more", node.Name)
		case holder != "" && (by == "" || holder == by):
			c.b.Fatalf("the node %s still has the annotation that says that the Patrol has cordoned it", node.Name)
		case !c.cordons[node.Name] && node.Spec.Unschedulable && holder == "":
			c.b.Fatalf("the node %s is still cordoned", node.Name)
		}
	}
}

// gone waits until the Patrol p is gone, and deletes its Jobs then, as the garbage collector.
func (c *cluster) gone() {
	c.eventually(func() string {
		if c.get("p") != nil {
			return "the Patrol was deleted, and is still there"
		}
		return ""
	})
	c.b.Event("the Patrol is gone")
	c.uncordonedAll("")
	c.must("deleting Jobs", c.client.DeleteAllOf(c.b.Context(), &batchv1.Job{}, client.InNamespace(c.namespace),
		client.PropagationPolicy(metav1.DeletePropagationBackground)))
	c.eventually(func() string {
		if len(c.jobs()) > 0 {
			return "the Patrol is gone, and a Job of it has a finalizer that is not removed"
		}
		return ""
	})
}
