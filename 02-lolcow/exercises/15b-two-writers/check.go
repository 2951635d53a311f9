// Package twowriters is exercise 15b: two controllers that write to one object.
package twowriters

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader repairs.
type Entry func(c client.Client) (greeter, scaler reconcile.Reconciler)

// rounds is how often both controllers have to write, each once in the middle of the other.
const rounds = 50

// Check calls the controllers one after the other, and one in the middle of the other.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("the Deployment has the greeting of the Lolcow, and its replicas", func(b *check.B) {
		p := newPasture(b, work.Entry)
		p.reconcile(p.greeter)
		p.reconcile(p.scaler)
		p.expect()
		p.change("Baa", 3)
		p.reconcile(p.greeter)
		p.reconcile(p.scaler)
		p.expect()
	})
	if !ok {
		return
	}
	t.Behaviour("while there is no Deployment, the scaler creates none, and returns no error", func(b *check.B) {
		p := newPasture(b, work.Entry)
		p.reconcile(p.scaler)
		if err := p.client.Get(b.Context(), p.key, &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
			b.Fatalf("there was no Deployment, and the scaler has created one")
		}
	})
	t.Behaviour("each writes its own fields, and leaves the others as they are", func(b *check.B) {
		p := newPasture(b, work.Entry)
		p.settle()
		p.change("Baa", 3)
		p.reconcile(p.scaler)
		p.expectFields("Moo", 3)
		p.reconcile(p.greeter)
		p.expectFields("Baa", 3)
		p.change("Boo", 4)
		p.reconcile(p.greeter)
		p.expectFields("Boo", 3)
	})
	t.Behaviour("100 writes, each in the middle of another one, lose nothing", func(b *check.B) {
		p := newPasture(b, work.Entry)
		p.settle()
		for i := range rounds {
			for _, first := range []*writer{p.greeter, p.scaler} {
				p.change(fmt.Sprintf("Moo %d, says the %s", i, first.name), int32(i%9+1))
				p.interleave(first)
				p.expect()
			}
		}
	})
	t.Behaviour("a write of the other controller makes none of them fail", func(b *check.B) {
		p := newPasture(b, work.Entry)
		p.settle()
		for i, first := range []*writer{p.greeter, p.scaler} {
			p.change(fmt.Sprintf("Baa %d", i), int32(i+4))
			second := p.other(first)
			p.interrupt(func() { _ = p.try(second) })
			if err := p.try(first); err != nil {
				b.Fatalf("the %s wrote something else, and the %s returned the error: %v", second.name, first.name, err)
			}
		}
	})
	t.Behaviour("a request that fails is tried again, or leads to an error", func(b *check.B) {
		p := newPasture(b, work.Entry)
		// The greeter twice: it creates the Deployment, and it changes it.
		for i, one := range []*writer{p.greeter, p.greeter, p.scaler} {
			for number := 1; ; number++ {
				p.change(fmt.Sprintf("Moo %d.%d", i, number), int32(number%9+1))
				if !p.fail(one, number) {
					break
				}
			}
		}
	})
	checkOthers(t, work.Entry)
}

// checkOthers has another client write, and a user.
func checkOthers(t *check.T, entry Entry) {
	t.Behaviour("a sidecar and an annotation of another client stay", func(b *check.B) {
		p := newPasture(b, entry)
		p.settle()
		p.inject()
		p.change("Baa", 3)
		p.settle()
		p.expect()
		p.expectInjected()
	})
	t.Behaviour("a sidecar that comes in the middle of a write stays, too", func(b *check.B) {
		p := newPasture(b, entry)
		p.settle()
		p.change("Baa", 3)
		p.interrupt(p.inject)
		p.settle()
		p.expect()
		p.expectInjected()
	})
	t.Behaviour("what a user changes of their fields is set back", func(b *check.B) {
		p := newPasture(b, entry)
		p.settle()
		p.edit("the replicas", `{"spec":{"replicas":7}}`)
		p.edit("the arguments", `{"spec":{"template":{"spec":{"containers":[{"name":"lolcow","args":["--","Hiss"]}]}}}}`)
		p.reconcile(p.greeter)
		p.reconcile(p.scaler)
		p.expect()
	})
}

// fail reconciles with one whose request with this number fails. It returns whether there were so many.
func (p *pasture) fail(one *writer, number int) bool {
	requests := 0
	p.wire.Fail(1, func(kube.Request) bool {
		requests++
		return requests == number
	})
	err := p.try(one)
	p.wire.Fail(0, nil)
	wrong := ""
	switch {
	case err != nil:
	case one == p.greeter:
		wrong = p.wrongGreeting(p.greeting)
	default:
		wrong = p.wrongReplicas(p.replicas)
	}
	if wrong != "" {
		p.b.Fatalf("a request failed, and the %s returned no error: it is not called again, and %s", one.name, wrong)
	}
	return requests >= number
}

// settle reconciles with both, without anything in between. Errors are another behaviour's.
func (p *pasture) settle() {
	for range 2 {
		_ = p.try(p.greeter)
		_ = p.try(p.scaler)
	}
}

// interleave reconciles with both, the second in the middle of the first, and repeats what fails, as a queue does.
func (p *pasture) interleave(first *writer) {
	const tries = 5
	second := p.other(first)
	done := false
	p.interrupt(func() { done = p.try(second) == nil })
	for range tries {
		if p.try(first) == nil {
			break
		}
	}
	p.interrupt(nil)
	if !done {
		_ = p.try(second)
	}
}
