// Package nameconflict is exercise 10b: a Deployment of the name that is not the Foo's, and a name that changes.
package nameconflict

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/generated/clientset/versioned"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry func(ctx context.Context, client kubernetes.Interface, foos versioned.Interface,
	event func(reason, message string), f *v1alpha1.Foo) error

// Check calls the reader's function where the name of the Deployment is free, taken, or changed.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("a Foo gets its Deployment", func(b *check.B) {
		c := start(b, work.Entry)
		c.reconcile()
		c.expectOwn("one")
		c.expectReady(v1alpha1.ReasonRollingOut)
	})
	ok = ok && t.Behaviour("a Deployment of the name that is not the Foo's is left as it is", func(b *check.B) {
		c := start(b, work.Entry)
		c.createOther("one")
		c.try()
		c.expectOther("one")
	})
	if !ok {
		return
	}
	t.Behaviour("that the name is taken is in the status, and is no error", func(b *check.B) {
		c := start(b, work.Entry)
		c.createOther("one")
		c.reconcile()
		c.expectReady(v1alpha1.ReasonNameConflict)
	})
	t.Behaviour("one Event is sent for a conflict, however long it lasts", func(b *check.B) {
		c := start(b, work.Entry)
		c.createOther("one")
		for range 3 {
			c.try()
		}
		c.expectEvents(1)
	})
	t.Behaviour("the Event is sent when the status has been written, and not before", func(b *check.B) {
		c := start(b, work.Entry)
		c.createOther("one")
		c.wire.Fail(1, func(r kube.Request) bool { return r.Resource == "foos/status" && kube.Writes(r) })
		if c.call() == nil {
			b.Fatalf("the status could not be written, and Reconcile returned no error")
		}
		c.expectEvents(0)
		c.try()
		c.expectEvents(1)
	})
	t.Behaviour("when the other Deployment is deleted, the Foo gets its own", func(b *check.B) {
		c := start(b, work.Entry)
		c.createOther("one")
		c.try()
		c.delete("one")
		c.reconcile()
		c.expectOwn("one")
		c.expectReady(v1alpha1.ReasonRollingOut)
	})
	t.Behaviour("a request that fails for another reason is returned as an error", func(b *check.B) {
		c := start(b, work.Entry)
		c.wire.Fail(1, func(r kube.Request) bool { return r.Resource == "deployments" && kube.Writes(r) })
		if c.call() == nil {
			b.Fatalf("the Deployment could not be written, and Reconcile returned no error")
		}
		c.reconcile()
		c.expectOwn("one")
	})
	checkBetween(t, work.Entry)
	checkRename(t, work.Entry)
	checkEarlier(t, work.Entry)
}

// checkBetween has another user write between the read and the write of Reconcile.
func checkBetween(t *check.T, entry Entry) {
	t.Behaviour("a Deployment that is created between read and write is not adopted", func(b *check.B) {
		c := start(b, entry)
		c.before(kube.Writes, func() { c.createOther("one") })
		c.try()
		c.expectOther("one")
	})
	t.Behaviour("a Deployment that takes the place of the Foo's own between read and write is not adopted", func(b *check.B) {
		c := start(b, entry)
		c.reconcile()
		c.edit("one")
		c.before(kube.Writes, func() { c.replace("one") })
		c.try()
		c.expectOther("one")
	})
	t.Behaviour("a Deployment that takes the place of the one of the earlier name is not deleted", func(b *check.B) {
		c := start(b, entry)
		c.reconcile()
		c.rename()
		c.before(kube.Deletes, func() { c.replace("one") })
		c.try()
		c.expectOther("one")
	})
}

// checkEarlier has Deployments of a Foo that was deleted, and that the garbage collector has not deleted yet.
func checkEarlier(t *check.T, entry Entry) {
	t.Behaviour("a Deployment of the name that an earlier Foo of the same name controls is a conflict, too", func(b *check.B) {
		c := start(b, entry)
		c.createOther("one", earlierFoo())
		c.try()
		c.expectOther("one")
		c.expectReady(v1alpha1.ReasonNameConflict)
	})
	t.Behaviour("a Deployment of another name that an earlier Foo of the same name controls is not deleted", func(b *check.B) {
		c := start(b, entry)
		c.createOther("another", earlierFoo())
		c.reconcile()
		c.rename()
		c.reconcile()
		c.expectOther("another")
	})
}

func checkRename(t *check.T, entry Entry) {
	t.Behaviour("after a change of the name, the new Deployment is there before the old one is deleted", func(b *check.B) {
		c := start(b, entry)
		c.reconcile()
		c.expectOwn("one")
		c.rename()
		early := false
		c.before(kube.Deletes, func() { early = c.get("two") == nil })
		c.reconcile()
		c.expectOwn("two")
		switch {
		case early:
			b.Fatalf("the old Deployment was deleted when the new one did not exist")
		case c.get("one") != nil:
			b.Fatalf("the Deployment of the earlier name is still there")
		}
	})
	t.Behaviour("if the old Deployment cannot be deleted, that is an error, and the next call deletes it", func(b *check.B) {
		c := start(b, entry)
		c.reconcile()
		c.rename()
		c.wire.Fail(1, kube.Deletes)
		if c.call() == nil {
			b.Fatalf("the old Deployment could not be deleted, and Reconcile returned no error")
		}
		c.reconcile()
		if c.get("one") != nil {
			b.Fatalf("the Deployment of the earlier name is still there")
		}
	})
	t.Behaviour("while the new name is taken, the Deployment of the old name stays", func(b *check.B) {
		c := start(b, entry)
		c.reconcile()
		c.createOther("two")
		c.rename()
		c.try()
		c.expectOther("two")
		c.expectOwn("one")
	})
	t.Behaviour("what the Foo does not control is not deleted, whatever its labels are", func(b *check.B) {
		c := start(b, entry)
		c.createOther("another")
		c.reconcile()
		c.rename()
		c.reconcile()
		c.expectOther("another")
	})
}

// call calls the reader's function with the Foo as it is now.
func (c *cluster) call() error {
	f, err := c.foos.FooV1alpha1().Foos(c.namespace).Get(c.b.Context(), fooName, metav1.GetOptions{})
	if err != nil {
		c.b.Fatalf("reading the Foo: %v", err)
	}
	c.b.Event("Reconcile")
	return c.entry(c.b.Context(), c.wire.Client(), c.throughWire, c.event, f)
}

// try calls the reader's function. The error is another behaviour's.
func (c *cluster) try() {
	if err := c.call(); err != nil {
		c.b.Event("  it returned the error: %v", err)
	}
}

// reconcile calls the reader's function, which has no reason to return an error.
func (c *cluster) reconcile() {
	if err := c.call(); err != nil {
		c.b.Fatalf("Reconcile returned an error: %v", err)
	}
}
