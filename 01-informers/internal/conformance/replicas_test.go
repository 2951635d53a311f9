package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/conformance/inprocess"
	"example.com/workbook/01-informers/internal/foo"
	"example.com/workbook/01-informers/internal/operator"
)

// elect turns leader election on, as in a cluster.
func elect(o *operator.Options) { o.LeaderElect = true }

// electBriefly turns leader election on with a lease whose end a test can wait for.
func electBriefly(o *operator.Options) {
	o.LeaderElect = true
	// Not more often than once a second: client-go cuts the times in a lease to whole seconds
	// (LeaderElectionRecord in tools/leaderelection/resourcelock/interface.go), and a replica that waits does
	// not see a renewal in the same second as the one before.
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = lease, 5*time.Second, time.Second
}

const lease = 9 * time.Second

// holder returns who holds the lease; empty if nobody does.
func (w *trial) holder() string {
	lease := &coordinationv1.Lease{}
	err := w.Client.Get(w.ctx, client.ObjectKey{Namespace: w.account.Namespace, Name: foo.LeaseName}, lease)
	if client.IgnoreNotFound(err) != nil {
		w.Expect(err).NotTo(HaveOccurred())
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// by tells of a write whether a replica did it.
func by(identity string) func(inprocess.Write) bool {
	return func(write inprocess.Write) bool { return strings.Contains(write.UserAgent, identity) }
}

// Of two replicas the leader is cut off while there is much to do, as if its node were gone. The other one
// takes over when the lease has run out.
func TestLeaderIsCutOff(t *testing.T) {
	t.Parallel()
	for _, implementation := range implementations(t) {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			w := newTrial(t, implementation)
			w.handOver(func(leader *inprocess.Running) { leader.Cut() })
		})
	}
}

// All that the leader asks about the lease hangs, while its other requests pass. It has to stop writing by
// itself before the other replica begins.
func TestLeaderCannotRenewTheLease(t *testing.T) {
	t.Parallel()
	for _, implementation := range implementations(t) {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			w := newTrial(t, implementation)
			leases := newGate(func(req *http.Request) bool { return strings.Contains(req.URL.Path, "/leases") })
			w.wrapFirst = leases.wrap
			w.handOver(func(*inprocess.Running) { leases.close() })
		})
	}
}

// handOver lives through the end of a leader that does not end in order, with ever more Foos to work on, and
// asserts that at no time two replicas write.
func (w *trial) handOver(strike func(leader *inprocess.Running)) {
	w.t.Helper()
	first := inprocess.Start(w.t, w.account, inprocess.Settings{
		Implementation: w.implementation, Namespace: w.Namespace, Options: electBriefly,
		Config: func(config *rest.Config) {
			if w.wrapFirst != nil {
				config.Wrap(w.wrapFirst)
			}
		},
	})
	w.Eventually(w.holder).WithTimeout(w.Soon).ShouldNot(BeEmpty())
	leader := w.holder()
	second := w.start(electBriefly)
	var foos []*v1alpha1.Foo
	more := func() {
		name := fmt.Sprintf("foo-%03d", len(foos))
		foos = append(foos, w.create(name, name))
	}
	more()
	w.expectAvailable(foos[0], 1)

	strike(first)
	// Until it is over there is always something to write, for whoever is there.
	w.Eventually(func() string {
		more()
		return w.holder()
	}).WithTimeout(w.Soon).WithPolling(100 * time.Millisecond).ShouldNot(Equal(leader))
	heir := w.holder()
	for range 10 {
		more()
	}
	for _, f := range foos {
		w.expectAvailable(f, 1)
	}
	w.Expect(first.Wait()).To(HaveOccurred(), "it has lost the lease")
	second.Stop(w.t)

	writes := w.writes()
	handover := slices.IndexFunc(writes, by(heir))
	w.Expect(slices.ContainsFunc(writes, by(leader))).To(BeTrue())
	w.Expect(handover).To(BeNumerically(">", 0))
	for _, write := range writes {
		w.Expect(by(leader)(write) || by(heir)(write)).To(BeTrue(), "%s by %s", write, write.UserAgent)
		if by(leader)(write) {
			w.Expect(write.Answered).To(BeTemporally("<", writes[handover].Received), "%s", write)
		}
	}
	// That the other one takes a moment to notice is no merit of the leader's: it stops in time by itself.
	renewed := w.lastRenewal(leader)
	w.Expect(w.lastWrite(writes, leader)).To(BeTemporally("<", renewed.Add(lease)))
	w.Expect(writes[handover].Received).To(BeTemporally(">", renewed.Add(lease)))
	w.t.Logf("the leader last renewed the lease at 0 s, last wrote at %.1f s; the other first wrote at %.1f s",
		w.lastWrite(writes, leader).Sub(renewed).Seconds(), writes[handover].Received.Sub(renewed).Seconds())
}

// lastRenewal is when a replica last wrote the lease.
func (w *trial) lastRenewal(identity string) time.Time {
	var last time.Time
	for _, write := range w.account.Writes(w.t, w.account.Namespace) {
		if write.Lease() && by(identity)(write) && write.Code < 300 {
			last = write.Answered
		}
	}
	return last
}

// lastWrite is when a replica's last write was answered.
func (w *trial) lastWrite(writes []inprocess.Write, identity string) time.Time {
	var last time.Time
	for _, write := range writes {
		if by(identity)(write) && write.Answered.After(last) {
			last = write.Answered
		}
	}
	return last
}

// A leader that is told to end gives the lease back, and the other replica need not wait for it to run out.
func TestLeaderHandsOverWhenItEnds(t *testing.T) {
	t.Parallel()
	for _, implementation := range implementations(t) {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			w := newTrial(t, implementation)
			first := w.start(elect)
			w.createReady("before", "before")
			leader := w.holder()
			second := w.start(elect)
			first.Stop(t)
			w.Expect(w.holder()).NotTo(Equal(leader), "released before it ended")
			released := w.lastRenewal(leader)
			w.createReady("after", "after")
			w.Expect(w.holder()).NotTo(BeElementOf("", leader))
			writes := w.writes()
			taken := writes[slices.IndexFunc(writes, by(w.holder()))].Received
			w.Expect(taken.Sub(released)).To(BeNumerically("<", 10*time.Second), "the lease lasts 15 s")
			second.Stop(t)
		})
	}
}

// A replica that is not the leader ends in good order too, and has written nothing.
func TestStandbyWritesNothingAndEnds(t *testing.T) {
	t.Parallel()
	for _, implementation := range implementations(t) {
		t.Run(implementation, func(t *testing.T) {
			t.Parallel()
			w := newTrial(t, implementation)
			lease := &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.account.Namespace, Name: foo.LeaseName},
				Spec: coordinationv1.LeaseSpec{
					HolderIdentity: new("somebody"), LeaseDurationSeconds: new(int32(3600)),
					AcquireTime: new(metav1.NowMicro()), RenewTime: new(metav1.NowMicro()),
				},
			}
			w.Expect(w.Client.Create(w.ctx, lease)).To(Succeed())
			standby := w.start(elect)
			f := w.create("web", "web-server")
			w.Consistently(func() []inprocess.Write { return w.account.Writes(t, "") }).WithTimeout(2 * time.Second).Should(BeEmpty())
			standby.Stop(t)
			w.refresh(f)
			w.Expect(f.Status).To(Equal(v1alpha1.FooStatus{}))
		})
	}
}
