package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

func TestTimeOfAnObject(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	var s skews
	one, other := types.NamespacedName{Name: "one"}, types.NamespacedName{Name: "other"}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

	g.Expect(s.now(one, now, time.Time{})).To(Equal(now), "it was not launched yet")
	g.Expect(s.now(one, now, now.Add(-time.Hour))).To(Equal(now))
	launched := now.Add(time.Hour)
	g.Expect(s.now(one, now, launched)).To(Equal(launched))
	g.Expect(s.since(one)).To(Equal(launched))
	g.Expect(s.now(one, now.Add(time.Minute), launched)).To(Equal(launched.Add(time.Minute)), "it continues from there")
	g.Expect(s.since(one)).To(Equal(launched), "it was read before")
	started := now.Add(24 * time.Hour)
	g.Expect(s.now(one, now.Add(2*time.Minute), started)).To(Equal(started), "the Job was started by a clock that is further ahead")
	g.Expect(s.now(one, now.Add(3*time.Minute), launched)).To(Equal(started.Add(time.Minute)), "the latest time counts, whichever is asked for")
	g.Expect(s.now(one, started.Add(time.Second), started)).To(Equal(started.Add(time.Second)), "our clock is not behind any more")
	g.Expect(s.now(other, now, time.Time{})).To(Equal(now), "each object has a time of its own")
	s.forget(one)
	g.Expect(s.since(one)).To(BeZero())
	g.Expect(s.now(one, now, now.Add(-time.Hour))).To(Equal(now))
	g.Expect(s.since(one)).To(Equal(now), "our clock may be an hour ahead")
}
