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

	g.Expect(p.wait(one, now)).To(BeZero(), "nothing was written yet")
	p.wrote(one, now)
	g.Expect(p.wait(one, now)).To(Equal(time.Second))
	g.Expect(p.wait(one, now.Add(600*time.Millisecond))).To(Equal(400 * time.Millisecond))
	g.Expect(p.wait(one, now.Add(time.Second))).To(BeZero())
	g.Expect(p.wait(other, now)).To(BeZero(), "each object has a pace of its own")
	p.forget(one)
	g.Expect(p.wait(one, now)).To(BeZero())
}
