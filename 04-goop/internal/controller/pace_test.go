package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

func TestPace(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	var p pace
	one, other := types.NamespacedName{Name: "one"}, types.NamespacedName{Name: "other"}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

	g.Expect(p.wait(one, writesStatus, now)).To(BeZero(), "nothing was written yet")
	p.wrote(one, writesStatus, now)
	g.Expect(p.wait(one, writesStatus, now)).To(Equal(time.Second))
	g.Expect(p.wait(one, writesRecord, now.Add(600*time.Millisecond))).To(Equal(400 * time.Millisecond))
	g.Expect(p.wait(one, writesRecord, now.Add(time.Second))).To(BeZero())
	g.Expect(p.wait(other, writesStatus, now)).To(BeZero(), "each Goop has a pace of its own")
	p.wrote(one, writesRecord, now)
	g.Expect(p.wait(one, writesStatus, now)).To(Equal(time.Second))
	g.Expect(p.wait(one, writesRecord, now)).To(Equal(2*time.Second), "the status is next")
	p.forget(one)
	g.Expect(p.wait(one, writesRecord, now)).To(BeZero())
}

// While both the record and the status always have something to write, they take turns, and each second has one write.
func TestNeitherStarves(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	var p pace
	goop, writes := types.NamespacedName{Name: "one"}, map[writer]int{}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for now := start; now.Before(start.Add(time.Minute)); now = now.Add(10 * time.Millisecond) {
		for _, by := range []writer{writesRecord, writesStatus} {
			if p.wait(goop, by, now) == 0 {
				p.wrote(goop, by, now)
				writes[by]++
			}
		}
	}
	g.Expect(writes).To(Equal(map[writer]int{writesRecord: 30, writesStatus: 30}))
}
