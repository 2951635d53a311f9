package raw

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/cache"
	testclock "k8s.io/utils/clock/testing"
)

// at is a store with a resourceVersion.
type at string

func (a *at) LastStoreSyncResourceVersion() string { return string(*a) }

func TestWritten(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	foos, deployments := at("100"), at("100")
	clock := testclock.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	w := newWritten(&foos, &deployments, clock)
	one, other := cache.NewObjectName("space", "one"), cache.NewObjectName("space", "other")
	g.Expect(w.seen(one)).To(BeTrue(), "nothing was written")

	w.noteDeployment(one, "101")
	w.noteFoo(one, "102")
	g.Expect(w.seen(one)).To(BeFalse())
	g.Expect(w.seen(other)).To(BeTrue())
	foos = "102"
	g.Expect(w.seen(one)).To(BeFalse(), "the other cache is behind")
	foos, deployments = "100", "1000"
	g.Expect(w.seen(one)).To(BeFalse(), "they are compared as numbers")
	foos = "102"
	g.Expect(w.seen(one)).To(BeTrue())
	foos = "1"
	g.Expect(w.seen(one)).To(BeTrue(), "the writes are forgotten")

	w.noteFoo(one, "200")
	w.forget(one)
	g.Expect(w.seen(one)).To(BeTrue())

	w.noteFoo(one, "200")
	clock.SetTime(clock.Now().Add(longestStale - 1))
	g.Expect(w.seen(one)).To(BeFalse())
	clock.SetTime(clock.Now().Add(1))
	g.Expect(w.seen(one)).To(BeTrue(), "as after a restore of etcd")

	foos = ""
	w.noteFoo(one, "300")
	g.Expect(w.seen(one)).To(BeTrue(), "a store without a resourceVersion counts as up to date")
	g.Expect(w.writes).To(BeEmpty())
}
