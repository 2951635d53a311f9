// Package behind is exercise 15a: a controller that creates one dependent, with a cache that is behind.
package behind

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader repairs.
type Entry func(c client.Client, apiReader client.Reader) reconcile.Reconciler

// patience is for one call of Reconcile.
const patience = 10 * time.Second

// rounds is how often a reconciler whose cache is up to date again may still write.
const rounds = 10

// Check calls the reader's reconciler, with a cache that has everything, and with one that lacks the last changes.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("a Lolcow has a ConfigMap with its greeting, which it controls", func(b *check.B) {
		h := newHerd(b, work.Entry, 0)
		h.create("cow")
		h.reconcile("cow")
		h.expectGreeting()
		for range 3 {
			h.reconcile("cow")
		}
		h.expectOne("cow")
	})
	if !ok {
		return
	}
	t.Behaviour("each Lolcow has a ConfigMap of its own", func(b *check.B) {
		h := newHerd(b, work.Entry, 0)
		for _, name := range []string{"cow", "calf"} {
			h.create(name)
			h.reconcile(name)
		}
		h.expectOne("cow")
		h.expectOne("calf")
	})
	checkBehind(t, work.Entry)
	t.Behaviour("a ConfigMap that a user has deleted is created again", func(b *check.B) {
		h := newHerd(b, work.Entry, 0)
		h.create("cow")
		h.settle()
		h.deleteCard()
		h.settle()
		h.expectOne("cow")
	})
	t.Behaviour("when the cache is up to date, Reconcile sends no write", func(b *check.B) {
		h := newHerd(b, work.Entry, 0)
		h.create("cow")
		if sent := h.settle(); sent != "" {
			b.Fatalf("nothing has changed, the cache is up to date, and Reconcile sends: %s", sent)
		}
	})
}

// checkBehind has a cache that is behind.
func checkBehind(t *check.T, entry Entry) {
	waited := false
	t.Behaviour("a Lolcow has one ConfigMap after 20 reconciliations, with a cache that is behind", func(b *check.B) {
		h := newHerd(b, entry, 3)
		defer func() { waited = h.waited }()
		h.create("cow")
		for range 20 {
			h.reconcile("cow")
			h.expectAtMostOne("cow")
		}
		h.catchUp()
		h.settle()
		h.expectOne("cow")
	})
	t.Behaviour("a Lolcow has one ConfigMap also after a restart", func(b *check.B) {
		h := newHerd(b, entry, 1)
		h.create("cow")
		h.reconcile("cow")
		h.restart()
		h.reconcile("cow")
		h.expectAtMostOne("cow")
		h.restart()
		h.reconcile("cow")
		h.expectAtMostOne("cow")
		h.catchUp()
		h.settle()
		h.expectOne("cow")
	})
	t.Behaviour("a Lolcow has one ConfigMap also when the response to a write is lost", func(b *check.B) {
		h := newHerd(b, entry, 1)
		h.create("cow")
		h.lose = true
		for range 3 {
			h.reconcile("cow")
			h.expectAtMostOne("cow")
		}
		h.catchUp()
		h.settle()
		h.expectOne("cow")
	})
	t.Behaviour("Reconcile does not wait", func(b *check.B) {
		if waited {
			b.Fatalf("Reconcile waits: this cache is behind by events, and for no time that you could wait")
		}
	})
}

// settle reconciles cow until nothing is written any more, and returns what the last reconciliation wrote.
func (h *herd) settle() string {
	var sent string
	for range rounds {
		before := len(h.wire.Requests())
		h.reconcile("cow")
		sent = ""
		for _, request := range h.wire.Requests()[before:] {
			if kube.Writes(request) {
				sent = request.String()
			}
		}
		if sent == "" {
			return ""
		}
	}
	return sent
}
