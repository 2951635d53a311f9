package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	g.Expect(p.wait(one, now.Add(-time.Hour))).To(BeZero(), "the clock was set back")
	p.forget(one)
	g.Expect(p.wait(one, now)).To(BeZero())
}

// unreadable is a client whose reads fail.
type unreadable struct{ client.Client }

func (unreadable) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("no connection")
}

// A Flux that cannot be read may still exist: the next write of its status keeps the pace.
func TestPaceIsKeptIfTheFluxCannotBeRead(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	now := time.Now()
	r := NewFluxReconciler(unreadable{}, nil, nil, testclock.NewFakePassiveClock(now))
	req := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "hive", Name: "bees"}}
	r.pace.wrote(req.NamespacedName, now)
	_, err := r.Reconcile(t.Context(), req)
	g.Expect(err).To(MatchError("no connection"))
	g.Expect(r.pace.wait(req.NamespacedName, now)).To(Equal(readinessPace))
}
