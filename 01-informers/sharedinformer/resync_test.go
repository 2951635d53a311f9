package main

import (
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/cache"
)

// The seed journey sets 30 seconds and calls it a sync. Nothing is asked of the server: the cache repeats
// itself, and what the watch has lost stays lost.
func TestSeedQuestion_AResyncAsksTheServerForNothing(t *testing.T) {
	inBubble(t, 30*time.Second, func(b *bubble) {
		g := NewWithT(b)
		handler := &recorder{}
		registration := b.handle(handler)
		b.start()
		g.Expect(cache.WaitFor(b.Context(), "", registration.HasSyncedChecker())).To(BeTrue())
		synctest.Wait()
		requests := len(b.client.Actions())

		time.Sleep(5 * time.Minute) // of the bubble's time
		synctest.Wait()
		g.Expect(handler.count("resynced")).To(Equal(10 * 2))
		g.Expect(handler.count("updated")).To(BeZero())
		g.Expect(b.client.Actions()).To(HaveLen(requests))
	})
}

func TestAHandlerDecidesOnItsOwnResync(t *testing.T) {
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

// A factory with a period of 0 makes informers that do not resync, and a handler's wish changes nothing. It
// is only logged.
func TestAnInformerWithoutResyncsIgnoresAHandlersWish(t *testing.T) {
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
