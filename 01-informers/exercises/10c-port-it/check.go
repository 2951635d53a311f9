// Package portit is exercise 10c: the controller of Foos on controller-runtime.
package portit

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry func(ctx context.Context, mgr ctrl.Manager) error

// patience is for what follows an event within milliseconds, and after a conflict or two.
const patience = 4 * time.Second

// Check runs a manager with the reader's controller for each behaviour.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("it creates a Deployment for a Foo", func(b *check.B) {
		c := start(b, work.Entry)
		c.createFoo(fooName, "one")
		c.expectOwn(fooName, "one")
		c.expectReady(fooName, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
	})
	ok = ok && t.Behaviour("it reports when all replicas are available", func(b *check.B) {
		c := start(b, work.Entry)
		c.createFoo(fooName, "one")
		c.expectOwn(fooName, "one")
		c.expectReady(fooName, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
		c.expectCaughtUp()
		c.rollOut("one")
		c.expectReady(fooName, metav1.ConditionTrue, v1alpha1.ReasonAvailable)
	})
	if !ok {
		return
	}
	t.Behaviour("it creates a Deployment again that was deleted", func(b *check.B) {
		c := start(b, work.Entry)
		c.createFoo(fooName, "one")
		own := c.expectOwn(fooName, "one")
		c.expectReady(fooName, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
		c.expectCaughtUp()
		// More often than events lead to another try.
		c.wire.Fail(8, func(r kube.Request) bool { return r.Resource == "deployments" && kube.Writes(r) })
		c.delete(own)
		c.expectOwn(fooName, "one")
	})
	t.Behaviour("it changes the Deployment when spec.replicas changes", func(b *check.B) {
		c := start(b, work.Entry)
		c.createFoo(fooName, "one")
		c.expectOwn(fooName, "one")
		c.set("replicas", "3")
		c.expectReplicas("one", 3)
	})
	t.Behaviour("it leaves a Deployment of the name unchanged that is not the Foo's", func(b *check.B) {
		c := start(b, work.Entry)
		other := c.createOther("one")
		c.expectCaughtUp()
		c.wire.Fail(1, func(r kube.Request) bool { return r.Name == fooName && r.Resource == "foos/status" && kube.Writes(r) })
		c.createFoo(fooName, "one")
		c.expectConflict(other)
	})
	t.Behaviour("it creates the Foo's Deployment when the other one of its name is deleted", func(b *check.B) {
		c := start(b, work.Entry)
		other := c.createOther("one")
		c.createFoo(fooName, "one")
		c.expectReady(fooName, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
		c.expectCaughtUp()
		c.delete(other)
		c.expectOwn(fooName, "one")
		c.expectReady(fooName, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
	})
	renamed(t, work.Entry)
	others(t, work.Entry)
	t.Behaviour("it does not poll", func(b *check.B) { noPolling(start(b, work.Entry)) })
}

// renamed changes the name in the spec.
func renamed(t *check.T, entry Entry) {
	t.Behaviour("it replaces the Deployment when the name in the spec changes", func(b *check.B) {
		c := start(b, entry)
		c.createFoo(fooName, "one")
		old := c.expectOwn(fooName, "one")
		another := c.createOther("another")
		c.set("deploymentName", `"two"`)
		c.expectOwn(fooName, "two")
		c.expectGone(old)
		c.expectUnchanged(another)
	})
	t.Behaviour("it tries again to delete the Deployment of the earlier name when that has failed", func(b *check.B) {
		c := start(b, entry)
		c.createFoo(fooName, "one")
		old := c.expectOwn(fooName, "one")
		// More often than events lead to another try.
		c.wire.Fail(8, kube.Deletes)
		c.set("deploymentName", `"two"`)
		c.expectOwn(fooName, "two")
		c.expectGone(old)
	})
	t.Behaviour("it keeps the Deployment of the earlier name while the new name is taken", func(b *check.B) {
		c := start(b, entry)
		c.createFoo(fooName, "one")
		c.expectOwn(fooName, "one")
		other := c.createOther("two")
		c.expectCaughtUp()
		c.set("deploymentName", `"two"`)
		c.expectConflict(other)
		// When another Foo has been reconciled, the reconciliation that reported the conflict has ended.
		c.createFoo("last", "last")
		c.expectOwn("last", "last")
		if c.isGone("one") {
			b.Fatalf("the new name is taken, and Deployment one of the earlier name was deleted")
		}
	})
}

// noPolling checks it while the Deployment is being rolled out, and while the name is taken.
func noPolling(c *cluster) {
	c.createFoo(fooName, "one")
	c.expectOwn(fooName, "one")
	c.expectReady(fooName, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
	c.expectNoPolling("the Deployment is being rolled out")
	c.createOther("two")
	c.set("deploymentName", `"two"`)
	c.expectReady(fooName, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
	c.expectNoPolling("the name is taken")
}

// others has Deployments that look like the Foo's.
func others(t *check.T, entry Entry) {
	t.Behaviour("it leaves a Deployment of the name unchanged that an earlier Foo of the same name controls", func(b *check.B) {
		c := start(b, entry)
		other := c.createOther("one", earlierFoo())
		c.createFoo(fooName, "one")
		c.expectConflict(other)
	})
	t.Behaviour("it does not delete a Deployment of another name that an earlier Foo of the same name controls", func(b *check.B) {
		c := start(b, entry)
		other := c.createOther("another", earlierFoo())
		c.createFoo(fooName, "one")
		c.expectOwn(fooName, "one")
		c.expectCaughtUp()
		c.expectUnchanged(other)
	})
	t.Behaviour("it leaves a Deployment unchanged that takes the place of the Foo's own, which was deleted", func(b *check.B) {
		c := start(b, entry)
		c.createFoo(fooName, "one")
		own := c.expectOwn(fooName, "one")
		c.expectReady(fooName, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
		c.expectCaughtUp()
		c.expectConflict(c.replace(own))
	})
}

// rolledOut is the status of a Deployment whose replicas are all updated and available.
func rolledOut(deployment *appsv1.Deployment) appsv1.DeploymentStatus {
	replicas := *deployment.Spec.Replicas
	return appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation,
		Replicas:           replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas,
	}
}
