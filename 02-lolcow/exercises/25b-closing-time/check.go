// Package closing is exercise 25b: a reconciler that acts at a time.
package closing

import (
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// Entry is what the reader writes.
type Entry func(c client.Client, clock clock.PassiveClock) reconcile.Reconciler

// morning is when the clock begins. It lies in the past, so that code which asks for the real time is wrong.
var morning = time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)

// Check reconciles shops, and steps the clock.
func Check(t *check.T, work check.Work[Entry]) {
	ok := t.Behaviour("before the time the shop is open", func(b *check.B) {
		s := newShop(b, work.Entry)
		s.closesAt(8 * time.Hour)
		s.reconcile()
		s.expect("true")
	})
	ok = ok && t.Behaviour("it closes at the time, to the nanosecond", func(b *check.B) {
		s := newShop(b, work.Entry)
		s.closesAt(24*time.Hour + 1)
		s.runUntil(24*time.Hour + 1)
	})
	if !ok {
		return
	}
	t.Behaviour("it closes if the clock is exactly at the time, and if it is after it", func(b *check.B) {
		for _, closes := range []time.Duration{0, -1, -time.Hour} {
			s := newShop(b, work.Entry)
			s.closesAt(closes)
			s.reconcile()
			s.expect("false")
			s.set("open", "true")
			s.reconcile()
			s.expect("false")
		}
	})
	t.Behaviour("a reconciliation before the time, for another reason, does no harm", func(b *check.B) {
		s := newShop(b, work.Entry)
		s.closesAt(time.Hour)
		for _, early := range []time.Duration{time.Hour - time.Millisecond, time.Hour - 1} {
			s.clock.SetTime(morning.Add(early))
			s.reconcile()
			s.expect("true")
		}
		s.runUntil(time.Hour)
	})
	t.Behaviour("a time that the user changes is the one that counts", func(b *check.B) {
		s := newShop(b, work.Entry)
		s.closesAt(time.Hour)
		s.runUntil(time.Hour)
		s.closesAt(3 * time.Hour)
		s.runUntil(3 * time.Hour)
		s.closesAt(5 * time.Hour)
		s.reconcile()
		s.closesAt(4 * time.Hour)
		s.runUntil(4 * time.Hour)
	})
	t.Behaviour("after a restart it closes, also if the time has come meanwhile", func(b *check.B) {
		s := newShop(b, work.Entry)
		s.closesAt(time.Hour)
		s.reconcile()
		s.restart()
		s.runUntil(time.Hour)
		s.closesAt(2 * time.Hour)
		s.reconcile()
		s.clock.SetTime(morning.Add(3 * time.Hour))
		s.restart()
		s.reconcile()
		s.expect("false")
	})
	checkRest(t, work.Entry)
}

func checkRest(t *check.T, entry Entry) {
	t.Behaviour("without a time the shop is open, and nothing is left to be done later", func(b *check.B) {
		s := newShop(b, entry)
		result := s.reconcile()
		s.expect("true")
		if result.RequeueAfter > 0 {
			b.Fatalf("the shop never closes, and Reconcile asks for another reconciliation in %s", result.RequeueAfter)
		}
		for _, change := range []func(){s.removeTime, func() { s.set("closesAt", "") }} {
			s.closesAt(-time.Hour)
			s.reconcile()
			s.expect("false")
			change()
			s.reconcile()
			s.expect("true")
		}
	})
	t.Behaviour("a text that is no time changes nothing, and is not tried again", func(b *check.B) {
		s := newShop(b, entry)
		s.closesAt(time.Hour)
		s.reconcile()
		s.set("closesAt", "tomorrow")
		s.unreadable()
		s.expect("true")
		s.closesAt(-time.Hour)
		s.reconcile()
		s.set("closesAt", "tomorrow")
		s.unreadable()
		s.expect("false")
	})
	t.Behaviour("a request that fails is repeated", func(b *check.B) {
		reads := func(request kube.Request) bool { return request.Resource == "configmaps" && kube.Reads(request) }
		for _, kind := range []func(kube.Request) bool{reads, kube.Writes} {
			s := newShop(b, entry)
			s.closesAt(time.Hour)
			s.wire.Fail(1, kind)
			switch result, err := s.call(); {
			case err != nil, s.open() == "true":
			case result.RequeueAfter == 0:
				b.Fatalf("a request failed, and the result of Reconcile asks for no other reconciliation")
			case result.RequeueAfter > time.Minute:
				b.Fatalf("a request failed, and the result of Reconcile asks for another reconciliation only in %s", result.RequeueAfter)
			}
			s.reconcile()
			s.expect("true")
		}
	})
	t.Behaviour("in steady state nothing is written", func(b *check.B) {
		s := newShop(b, entry)
		s.closesAt(time.Hour)
		for range 2 {
			s.reconcile()
			s.writesNothing()
			s.clock.SetTime(morning.Add(2 * time.Hour))
		}
	})
}
