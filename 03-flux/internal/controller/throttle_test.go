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

func TestThrottle(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	var writes throttle
	one, other := types.NamespacedName{Name: "one"}, types.NamespacedName{Name: "other"}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

	g.Expect(writes.wait(one, now)).To(BeZero(), "nothing was written yet")
	writes.wrote(one, now)
	g.Expect(writes.wait(one, now)).To(Equal(time.Second))
	g.Expect(writes.wait(one, now.Add(600*time.Millisecond))).To(Equal(400 * time.Millisecond))
	g.Expect(writes.wait(one, now.Add(time.Second))).To(BeZero())
	g.Expect(writes.wait(other, now)).To(BeZero(), "each object has a throttle of its own")
	g.Expect(writes.wait(one, now.Add(-time.Hour))).To(BeZero(), "the clock was set back")
	writes.forget(one)
	g.Expect(writes.wait(one, now)).To(BeZero())
}

// unreadable is a client whose reads fail.
type unreadable struct{ client.Client }

func (unreadable) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("no connection")
}

// A Flux that cannot be read may still exist: the next write of its status is throttled.
func TestThrottleIsKeptIfTheFluxCannotBeRead(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	now := time.Now()
	r := NewFluxReconciler(unreadable{}, nil, nil, testclock.NewFakePassiveClock(now))
	req := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "hive", Name: "bees"}}
	r.throttle.wrote(req.NamespacedName, now)
	_, err := r.Reconcile(t.Context(), req)
	g.Expect(err).To(MatchError("no connection"))
	g.Expect(r.throttle.wait(req.NamespacedName, now)).To(Equal(readinessInterval))
}
