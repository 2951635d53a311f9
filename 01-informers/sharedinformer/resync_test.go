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
