package plugin

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	testingclock "k8s.io/utils/clock/testing"
)

func TestALongLineOfProgressIsCut(t *testing.T) {
	g := NewWithT(t)
	var screen buffer
	c := newConsole(streamsTo(&screen))
	c.width = func() int { return 10 }
	c.draw("0123456789abcdef")
	g.Expect(screen.String()).To(Equal(eraseLine + "012345678"))
}

// The creation time of the Goop comes from another clock.
func TestProgressNeverCountsBackwards(t *testing.T) {
	g := NewWithT(t)
	now := time.Unix(1000, 0)
	p := &progress{clock: testingclock.NewFakePassiveClock(now), since: now.Add(time.Hour)}
	g.Expect(p.line()).To(Equal("waiting for the operator, 0s"))
}
