package raw

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// usual are the times of kube-controller-manager.
var usual = times{lease: 15 * time.Second, renew: 10 * time.Second, retry: 2 * time.Second}

// lease is a Lease without an API server.
type lease struct {
	mu      sync.Mutex
	record  *resourcelock.LeaderElectionRecord
	version int
}

// lock is the lock of one replica.
type lock struct {
	*lease
	identity string
	// seen is the version that it read or wrote last.
	seen int

	mu sync.Mutex
	// hangs blocks every request until its context ends.
	hangs bool
}

func (l *lock) hang() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hangs = true
}

func (l *lock) reach(ctx context.Context) error {
	l.mu.Lock()
	hangs := l.hangs
	l.mu.Unlock()
	if hangs {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := l.reach(ctx); err != nil {
		return nil, nil, err
	}
	l.lease.mu.Lock()
	defer l.lease.mu.Unlock()
	if l.record == nil {
		return nil, nil, apierrors.NewNotFound(leases, "lease")
	}
	l.seen = l.version
	record := *l.record
	return &record, []byte(record.HolderIdentity + record.RenewTime.String()), nil
}

func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if err := l.reach(ctx); err != nil {
		return err
	}
	l.lease.mu.Lock()
	defer l.lease.mu.Unlock()
	if l.seen != l.version {
		return apierrors.NewConflict(leases, "lease", errors.New("changed"))
	}
	l.version++
	l.record, l.seen = &record, l.version
	return nil
}

func (l *lock) RecordEvent(string) {}
func (l *lock) Identity() string   { return l.identity }
func (l *lock) Describe() string   { return "lease" }

// candidate is a replica that takes part in an election.
type candidate struct {
	lock  *lock
	begun time.Time
	// stop ends the context of lead.
	stop context.CancelFunc

	mu sync.Mutex
	state
}

// state has what is known of a candidate.
type state struct {
	// leads is when it became the leader, led when its work ended: since begun, -1 before.
	leads, led time.Duration
	ended      bool
	err        error
}

// newCandidate starts a replica. As the leader it works for the drain after it was stopped.
func newCandidate(t *testing.T, on *lease, identity string, drain time.Duration) *candidate {
	t.Helper()
	r := &candidate{lock: &lock{lease: on, identity: identity}, begun: time.Now(), state: state{leads: -1, led: -1}}
	e := &election{
		lock: r.lock, times: usual, watchdog: leaderelection.NewLeaderHealthzAdaptor(expiredTolerance),
	}
	var ctx context.Context
	ctx, r.stop = context.WithCancel(t.Context())
	t.Cleanup(r.stop)
	go func() {
		err := e.lead(ctx, func(ctx, leading context.Context) {
			r.note(&r.leads)
			select {
			case <-ctx.Done():
				pause(drain)
			case <-leading.Done():
			}
			r.note(&r.led)
		})
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ended, r.err = true, err
	}()
	synctest.Wait()
	return r
}

func (r *candidate) note(at *time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*at = time.Since(r.begun)
}

// now returns what is known of the candidate when the bubble is idle.
func (r *candidate) now() state {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

func TestLeaderReleasesTheLeaseAfterItsLastReconciliation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		shared := &lease{}
		one := newCandidate(t, shared, "one", 3*time.Second)
		g.Expect(one.now().leads).To(BeZero(), "the lease has no holder")
		two := newCandidate(t, shared, "two", 0)
		pause(time.Minute)
		g.Expect(two.now().leads).To(BeNumerically("<", 0), "the lease is renewed")

		one.stop()
		pause(3*time.Second - 1)
		g.Expect(one.now().led).To(BeNumerically("<", 0))
		g.Expect(one.now().ended).To(BeFalse(), "reconciliations are under way")
		g.Expect(two.now().leads).To(BeNumerically("<", 0))
		pause(1)
		g.Expect(one.now().ended).To(BeTrue())
		g.Expect(one.now().err).NotTo(HaveOccurred())

		// A candidate tries again after the retry period, and up to JitterFactor of it later.
		pause(usual.retry + time.Duration(leaderelection.JitterFactor*float64(usual.retry)))
		g.Expect(two.now().leads).To(BeNumerically(">=", time.Minute+3*time.Second), "not before the other has ended")
	})
}

func TestCandidateEndsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		shared := &lease{}
		newCandidate(t, shared, "one", 0)
		two := newCandidate(t, shared, "two", 0)
		two.stop()
		after := two.now()
		g.Expect(after.ended).To(BeTrue())
		g.Expect(after.err).NotTo(HaveOccurred())
		g.Expect(after.leads).To(BeNumerically("<", 0))
		g.Expect(shared.record.HolderIdentity).To(Equal("one"), "it does not release the lease of another")
	})
}

func TestLostLeaseIsAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		shared := &lease{}
		one := newCandidate(t, shared, "one", 0)
		pause(time.Minute)
		shared.mu.Lock()
		shared.record.HolderIdentity = "another"
		shared.version++
		shared.mu.Unlock()
		pause(usual.renew + 3*time.Second)
		after := one.now()
		g.Expect(after.led).To(BeNumerically(">", time.Minute))
		g.Expect(after.ended).To(BeTrue())
		g.Expect(after.err).To(MatchError(errLeaseLost))
		g.Expect(shared.record.HolderIdentity).To(Equal("another"))
	})
}

// A leader that cannot reach the API server stops its work before another replica may acquire the lease.
func TestLeaderWithoutConnectionStopsBeforeTheLeaseExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		shared := &lease{}
		one, two := newCandidate(t, shared, "one", 0), newCandidate(t, shared, "two", 0)
		pause(time.Minute)
		one.lock.hang()
		pause(time.Minute)
		first, second := one.now(), two.now()
		g.Expect(first.ended).To(BeTrue())
		g.Expect(first.err).To(MatchError(errLeaseLost))
		g.Expect(second.leads).To(BeNumerically(">", time.Minute), "the other has acquired the lease")
		g.Expect(first.led).To(BeNumerically("<", second.leads), "one at a time")
	})
}

// The reason why lead releases the lease itself: with client-go's own ReleaseOnCancel, the work goes on for as long as the
// release takes that fails.
func TestReleaseOnCancelEndsTooLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		shared := &lease{}
		own, begun := &lock{lease: shared, identity: "one"}, time.Now()
		led := make(chan time.Duration, 1)
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: own, LeaseDuration: usual.lease, RenewDeadline: usual.renew, RetryPeriod: usual.retry,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(leading context.Context) {
					<-leading.Done()
					led <- time.Since(begun)
				},
				OnStoppedLeading: func() {},
			},
		})
		g.Expect(err).NotTo(HaveOccurred())
		go elector.Run(t.Context())
		synctest.Wait()
		two := newCandidate(t, shared, "two", 0)
		own.hang()
		pause(time.Minute)
		leads := two.now().leads
		g.Expect(leads).To(BeNumerically(">", 0))
		g.Expect(<-led).To(BeNumerically(">", leads), "two at a time")
	})
}

func TestInvalidTimes(t *testing.T) {
	t.Parallel()
	e := &election{
		lock:     &lock{lease: &lease{}, identity: "one"},
		times:    times{lease: time.Second, renew: usual.renew, retry: usual.retry},
		watchdog: leaderelection.NewLeaderHealthzAdaptor(0),
	}
	err := e.lead(t.Context(), func(context.Context, context.Context) { t.Error("it leads") })
	NewWithT(t).Expect(errors.Unwrap(err)).To(MatchError(ContainSubstring("leaseDuration must be greater than renewDeadline")))
}
