package main

import (
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/cache"
)

// The study journal sets a resync period of 30 seconds and calls it a sync. A resync sends no request: the cache delivers its own
// objects again, and does not find an event that the watch missed.
func TestSeedQuestion_AResyncSendsNoRequest(t *testing.T) {
	inBubble(t, 30*time.Second, func(b *bubble) {
		g := NewWithT(b)
		handler := &recorder{}
		registration := b.handle(handler)
		b.start()
		g.Expect(cache.WaitFor(b.Context(), "", registration.HasSyncedChecker())).To(BeTrue())
		synctest.Wait()
		requests := len(b.client.Actions())

		time.Sleep(5 * time.Minute) // in the time of the bubble
		synctest.Wait()
		g.Expect(handler.count("resynced")).To(Equal(10 * 2))
		g.Expect(handler.count("updated")).To(BeZero())
		g.Expect(b.client.Actions()).To(HaveLen(requests))
	})
}

func TestEachHandlerHasItsOwnResyncPeriod(t *testing.T) {
	inBubble(t, time.Minute, func(b *bubble) {
		g := NewWithT(b)
		defaults, none, seldom := &recorder{}, &recorder{}, &recorder{}
		b.handle(defaults)
		b.handle(none, cache.HandlerOptions{ResyncPeriod: new(time.Duration(0))})
		b.handle(seldom, cache.HandlerOptions{ResyncPeriod: new(2 * time.Minute)})
		b.start()
		g.Expect(cache.WaitFor(b.Context(), "", b.informer.HasSyncedChecker())).To(BeTrue())
		time.Sleep(4*time.Minute + time.Second)
		synctest.Wait()
		g.Expect(defaults.count("resynced")).To(Equal(4 * 2))
		g.Expect(none.count("resynced")).To(BeZero())
		g.Expect(seldom.count("resynced")).To(Equal(2 * 2))
	})
}

// A factory with a period of 0 creates informers that do not resync. They ignore the period of a handler, and
// log that.
func TestAnInformerWithoutResyncsIgnoresThePeriodOfAHandler(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		g := NewWithT(b)
		handler := &recorder{}
		b.handle(handler, cache.HandlerOptions{ResyncPeriod: new(time.Minute)})
		b.start()
		time.Sleep(time.Hour)
		synctest.Wait()
		g.Expect(handler.count("added")).To(Equal(2))
		g.Expect(handler.count("resynced")).To(BeZero())
	})
}

func TestAResyncPeriodIsAtLeastASecond(t *testing.T) {
	inBubble(t, time.Minute, func(b *bubble) {
		g := NewWithT(b)
		handler := &recorder{}
		b.handle(handler, cache.HandlerOptions{ResyncPeriod: new(time.Millisecond)})
		b.start()
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		g.Expect(handler.count("resynced")).To(Equal(10 * 2))
	})
}
