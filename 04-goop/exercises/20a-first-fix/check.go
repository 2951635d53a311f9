// Package firstfix is exercise 20a: one correction in each reconciliation.
package firstfix

import (
	"context"
	"fmt"
	"math/rand/v2"

	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry func(ctx context.Context, client typedcorev1.ConfigMapInterface, name string) error

// disturbances are those of one chain.
const disturbances = 25

// Check reconciles chains, and disturbs them.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("a chain gets its links", func(b *check.B) {
		c := newChain(b, work.Entry, 3)
		c.converge()
	})
	if !ok {
		return
	}
	t.Behaviour("a link is created when the one before it is ready, and not earlier", func(b *check.B) {
		c := newChain(b, work.Entry, 3)
		c.ordered = true
		c.converge()
	})
	t.Behaviour("a new text arrives in all links, with one write in each call", func(b *check.B) {
		c := newChain(b, work.Entry, 4)
		c.converge()
		c.set("text", "Baa")
		c.oneWrite = true
		c.converge()
		c.set("text", "Meh")
		c.set("length", "2")
		c.converge()
		c.set("text", "Moo")
		c.set("length", "3")
		c.converge()
	})
	t.Behaviour("links that are too many are deleted, the last one first", func(b *check.B) {
		// By name, chain-10 comes before chain-9.
		c := newChain(b, work.Entry, 12)
		c.converge()
		c.set("length", "8")
		c.lastFirst = true
		c.converge()
	})
	t.Behaviour("what the other controller has written stays", func(b *check.B) {
		c := newChain(b, work.Entry, 2)
		c.mayUnready, c.oneWrite = false, true
		c.converge()
		c.set("text", "Baa")
		c.converge()
		c.set("text", "Meh")
		c.writesMeanwhile("since", "just now")
		c.converge()
		for number, link := range c.state() {
			if number == c.written && link.Data["since"] != "just now" {
				b.Fatalf("the other controller has written data.since of %s just before, and now its data is %v", link.Name, link.Data)
			}
		}
	})
	checkDisturbed(t, work.Entry)
	t.Behaviour("in steady state nothing is sent but reads", func(b *check.B) {
		c := newChain(b, work.Entry, 2)
		c.converge()
		if writes, err := c.call(); len(writes) > 0 || err != nil {
			b.Fatalf("nothing is out of order, and the call sent %v, and returned the error: %v", writes, err)
		}
	})
}

// checkDisturbed lets requests fail, and users write.
func checkDisturbed(t *check.T, entry Entry) {
	t.Behaviour("a request that fails is repeated", func(b *check.B) {
		c := newChain(b, entry, 2)
		gets := func(request kube.Request) bool { return request.Verb == "get" }
		for n, kind := range []func(kube.Request) bool{kube.Writes, kube.Lists, kube.Writes, gets} {
			c.wire.Fail(1, kind)
			c.converge()
			c.set("text", fmt.Sprintf("Moo %d", n))
		}
		c.converge()
		c.set("length", "1")
		c.wire.Fail(1, kube.Writes)
		c.converge()
	})
	t.Behaviour("after any disturbance the chain becomes what it should be", func(b *check.B) {
		c := newChain(b, entry, 3)
		c.converge()
		random := rand.New(rand.NewPCG(20, 1))
		for range disturbances {
			for range 1 + random.IntN(2) {
				c.disturb(random)
			}
			c.converge()
		}
	})
}
