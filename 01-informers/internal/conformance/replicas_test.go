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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/workbook/01-informers/api/samplecontroller/v1alpha1"
	"example.com/workbook/01-informers/internal/conformance/inprocess"
	"example.com/workbook/01-informers/internal/foo"
	"example.com/workbook/01-informers/internal/operator"
)

// elect enables leader election, as in a cluster.
func elect(o *operator.Options) { o.LeaderElect = true }

// electBriefly enables leader election with a short lease, for tests that wait until it expires.
func electBriefly(o *operator.Options) {
	o.LeaderElect = true
	// The lease is renewed once a second at most: client-go truncates its times to seconds (LeaderElectionRecord in
	// tools/leaderelection/resourcelock/interface.go), and other replicas do not notice a second renewal in one second.
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = lease, 3*time.Second, time.Second
}

const lease = 9 * time.Second

// holder returns the holder of the lease; empty if there is none.
func (e *operatorEnv) holder() string {
	lease := &coordinationv1.Lease{}
	err := e.Client.Get(e.ctx, client.ObjectKey{Namespace: e.account.Namespace, Name: foo.LeaseName}, lease)
	if client.IgnoreNotFound(err) != nil {
		e.Expect(err).NotTo(HaveOccurred())
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// by reports whether a write was of a replica.
func by(identity string) func(inprocess.Write) bool {
	return func(write inprocess.Write) bool { return strings.Contains(write.UserAgent, identity) }
}

// The leader loses its connection while there is much to do, as if its node had failed. The other replica acquires the lease
// when it has expired.
func TestLeaderIsCutOff(t *testing.T) {
	t.Parallel()
	forEach(t, func(e *operatorEnv) {
		e.handOver(nil, func(leader *inprocess.Running) { leader.Cut() })
	})
}

// All requests of the leader about the lease hang, and its other requests succeed. It has to stop writing before the other
// replica begins.
func TestLeaderCannotRenewTheLease(t *testing.T) {
	t.Parallel()
	forEach(t, func(e *operatorEnv) {
		leases := newGate(func(req *http.Request) bool { return strings.Contains(req.URL.Path, "/leases") })
		e.handOver(leases.wrap, func(*inprocess.Running) { leases.close() })
	})
}

// handOver has a leader, with a wrapper of its transport, fail while more and more Foos are created, and asserts that no two
// replicas write at once.
func (e *operatorEnv) handOver(wrap func(http.RoundTripper) http.RoundTripper, fail func(leader *inprocess.Running)) {
	e.t.Helper()
	first := e.startWith(wrap, electBriefly)
	e.Eventually(e.holder).WithTimeout(e.Soon).ShouldNot(BeEmpty())
	leader := e.holder()
	second := e.start(electBriefly)
	var foos []*v1alpha1.Foo
	more := func() {
		name := fmt.Sprintf("foo-%03d", len(foos))
		foos = append(foos, e.create(name, name))
	}
	more()
	e.expectAvailable(foos[0], 1)

	fail(first)
	// Until then there is always something to write.
	e.Eventually(func() string {
		more()
		return e.holder()
	}).WithTimeout(4 * e.Soon).WithPolling(100 * time.Millisecond).ShouldNot(Equal(leader)) // idle it takes lease and renewDeadline
	next := e.holder()
	for range 10 {
		more()
	}
	for _, f := range foos {
		e.expectAvailable(f, 1)
	}
	e.Expect(first.Wait()).To(HaveOccurred(), "it has lost the lease")
	second.Stop(e.t)

	writes := e.writes()
	handover := slices.IndexFunc(writes, by(next))
	e.Expect(slices.ContainsFunc(writes, by(leader))).To(BeTrue())
	e.Expect(handover).To(BeNumerically(">", 0))
	for _, write := range writes {
		e.Expect(by(leader)(write) || by(next)(write)).To(BeTrue(), "%s by %s", write, write.UserAgent)
		if by(leader)(write) {
			e.Expect(write.Responded).To(BeTemporally("<", writes[handover].Received), "%s", write)
		}
	}
	// The leader stops before the lease expires, and not only before the other replica notices that.
	renewed := e.lastRenewal(leader)
	e.Expect(e.lastWrite(writes, leader)).To(BeTemporally("<", renewed.Add(lease)))
	e.Expect(writes[handover].Received).To(BeTemporally(">", renewed.Add(lease)))
	e.t.Logf("the leader last renewed the lease at 0 s, last wrote at %.1f s; the other first wrote at %.1f s",
		e.lastWrite(writes, leader).Sub(renewed).Seconds(), writes[handover].Received.Sub(renewed).Seconds())
}

// lastRenewal is when a replica last wrote the lease.
func (e *operatorEnv) lastRenewal(identity string) time.Time {
	var last time.Time
	for _, write := range e.account.Writes(e.t, e.account.Namespace) {
		if write.Lease() && by(identity)(write) && write.ResponseStatus.Code < 300 {
			last = write.Responded
		}
	}
	return last
}

// lastWrite is when a replica got the last response to a write.
func (e *operatorEnv) lastWrite(writes []inprocess.Write, identity string) time.Time {
	var last time.Time
	for _, write := range writes {
		if by(identity)(write) && write.Responded.After(last) {
			last = write.Responded
		}
	}
	return last
}

// A leader that is stopped releases the lease, and the other replica does not wait until it expires.
func TestLeaderReleasesTheLeaseWhenItIsStopped(t *testing.T) {
	t.Parallel()
	forEach(t, func(e *operatorEnv) {
		// The lease is longer than anything that this test waits for.
		electForLong := func(o *operator.Options) {
			o.LeaderElect, o.LeaseDuration, o.RenewDeadline = true, 5*time.Minute, 2*time.Minute
		}
		first := e.start(electForLong)
		e.createReady("before", "before")
		leader := e.holder()
		second := e.start(electForLong)
		first.Stop(e.t)
		e.Expect(e.holder()).NotTo(Equal(leader), "released before it ended")
		released := e.lastRenewal(leader)
		e.createReady("after", "after")
		e.Expect(e.holder()).NotTo(BeElementOf("", leader))
		writes := e.writes()
		acquired := writes[slices.IndexFunc(writes, by(e.holder()))].Received
		e.Expect(acquired.Sub(released)).To(BeNumerically("<", time.Minute), "the lease lasts five")
		second.Stop(e.t)
	})
}

// A replica that is not the leader writes nothing, and returns no error when it is stopped.
func TestReplicaThatIsNotTheLeader(t *testing.T) {
	t.Parallel()
	forEach(t, func(e *operatorEnv) {
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: e.account.Namespace, Name: foo.LeaseName},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: new("another"), LeaseDurationSeconds: new(int32(3600)),
				AcquireTime: new(metav1.NowMicro()), RenewTime: new(metav1.NowMicro()),
			},
		}
		e.Expect(e.Client.Create(e.ctx, lease)).To(Succeed())
		standby := e.start(elect)
		f := e.create("web", "web-server")
		e.Consistently(func() []inprocess.Write { return e.account.Writes(e.t, "") }).WithTimeout(2 * time.Second).Should(BeEmpty())
		standby.Stop(e.t)
		e.Expect(e.holder()).To(Equal("another"), "it does not release the lease of another replica")
		e.get(e, f)
		e.Expect(f.Status).To(Equal(v1alpha1.FooStatus{}))
	})
}
