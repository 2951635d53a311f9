package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

func TestThrottle(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	var writes throttle
	one, other := types.NamespacedName{Name: "one"}, types.NamespacedName{Name: "other"}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

	g.Expect(writes.wait(one, writesStatus, now)).To(BeZero(), "nothing was written yet")
	writes.wrote(one, writesStatus, now)
	g.Expect(writes.wait(one, writesStatus, now)).To(Equal(time.Second))
	g.Expect(writes.wait(one, writesRecord, now.Add(600*time.Millisecond))).To(Equal(400 * time.Millisecond))
	g.Expect(writes.wait(one, writesRecord, now.Add(time.Second))).To(BeZero())
	g.Expect(writes.wait(other, writesStatus, now)).To(BeZero(), "each Goop has a throttle of its own")
	writes.wrote(one, writesRecord, now)
	g.Expect(writes.wait(one, writesStatus, now)).To(Equal(time.Second))
	g.Expect(writes.wait(one, writesRecord, now)).To(Equal(2*time.Second), "the status is next")
	writes.forget(one)
	g.Expect(writes.wait(one, writesRecord, now)).To(BeZero())
}

// While both the record and the status always have something to write, they take turns, and each second has one write.
func TestNeitherStarves(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	var writes throttle
	goop, counts := types.NamespacedName{Name: "one"}, map[writer]int{}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for now := start; now.Before(start.Add(time.Minute)); now = now.Add(10 * time.Millisecond) {
		for _, by := range []writer{writesRecord, writesStatus} {
			if writes.wait(goop, by, now) == 0 {
				writes.wrote(goop, by, now)
				counts[by]++
			}
		}
	}
	g.Expect(counts).To(Equal(map[writer]int{writesRecord: 30, writesStatus: 30}))
}
