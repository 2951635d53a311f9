// Package uninstall is exercise 22a: the removal of an operator, with all that it has to clean up.
package uninstall

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry func(ctx context.Context, c client.Client) error

const (
	patience = 5 * time.Second
	// limit is how long Uninstall may take if nothing is in the way: it looks some times, with two seconds in between.
	limit = 10 * time.Second
	// looks are so many that a pause which grows with each look has grown beyond pause, which the task allows.
	looks, pause = 12, 2 * time.Second
	// moment is shorter than what most programs wait between two requests, and longer than a request.
	moment = 20 * time.Millisecond
)

// Check uninstalls the operator of a kitchen.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("at the end nothing is left", func(b *check.B) {
		k := newKitchen(b, work.Entry)
		k.createTwo()
		k.uninstall()
		k.nothingIsLeft()
	})
	t.Behaviour("the operator has cleaned up after each Teapot", func(b *check.B) {
		k := newKitchen(b, work.Entry)
		k.createTwo()
		_ = k.call(b.Context()) // the error is the first behaviour's
		k.allCleanedUp()
	})
	if !ok {
		return
	}
	t.Behaviour("Teapots that are created meanwhile are cleaned up, too", func(b *check.B) {
		k := newKitchen(b, work.Entry)
		k.create(kube.Namespace(b), "one")
		k.late()
		k.uninstall()
		k.nothingIsLeft()
		k.allCleanedUp()
	})
	t.Behaviour("what is gone already is no error", func(b *check.B) {
		k := newKitchen(b, work.Entry)
		b.Event("a user deletes the Deployment of the operator")
		k.must("deleting a Deployment", k.client.Delete(b.Context(), k.operator()))
		k.uninstall()
		k.nothingIsLeft()
		b.Event("it is called once more, with the same client and with a new one")
		k.uninstall()
		k.newClient()
		k.uninstall()
	})
	t.Behaviour("nor is a Teapot that goes just before its deletion", func(b *check.B) {
		k := newKitchen(b, work.Entry)
		k.create(kube.Namespace(b), "one")
		k.goesBefore("one")
		k.uninstall()
		k.nothingIsLeft()
		k.allCleanedUp()
	})
	t.Behaviour("a list that fails does not mean that no Teapot is left", func(b *check.B) {
		k := newKitchen(b, work.Entry)
		k.createTwo()
		k.wire.Fail(1, func(r kube.Request) bool { return r.Resource == "teapots" && kube.Reads(r) })
		if err := k.call(b.Context()); err != nil {
			b.Event("it is called once more")
			k.uninstall()
		}
		k.nothingIsLeft()
		k.allCleanedUp()
	})
	t.Behaviour("without the CRD the operator is deleted all the same", func(b *check.B) {
		k := newKitchen(b, work.Entry)
		k.deleteCRD()
		k.newClient()
		k.uninstall()
		k.nothingIsLeft()
	})
	t.Behaviour("it notices soon that a Teapot is gone, however long that has taken", func(b *check.B) {
		k := newKitchen(b, work.Entry)
		k.create(kube.Namespace(b), "one")
		k.takesLong()
		k.uninstall()
		k.nothingIsLeft()
	})
	t.Behaviour("a Teapot that is not cleaned up is named, and operator and CRD stay", func(b *check.B) {
		stuck(b, work.Entry, 0)
	})
	t.Behaviour("so it is if the context ends between two requests", func(b *check.B) {
		stuck(b, work.Entry, moment)
	})
}

// stuck has a Teapot that the operator cannot clean up after, and another one. The context ends when that is gone, during a request
// for the first, or some time after that.
func stuck(b *check.B, entry Entry, after time.Duration) {
	k := newKitchen(b, entry)
	k.create(metav1.NamespaceDefault, "one")
	k.create(kube.Namespace(b), "stuck")
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	k.cancelWhenDeleted(after, cancel)
	err := k.call(ctx)
	switch {
	case err == nil:
		b.Fatalf("the Teapot stuck is not cleaned up, and Uninstall returned no error")
	case !strings.Contains(err.Error(), "stuck"):
		b.Fatalf("the Teapot stuck is not cleaned up, and the error does not name it: it is in the timeline")
	}
	k.stays("stuck")
	b.Event("the operator can clean up now, and Uninstall is called again")
	k.unstick()
	k.uninstall()
	k.nothingIsLeft()
	k.allCleanedUp()
}
