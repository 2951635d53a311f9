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

	"example.com/workbook/01-informers/internal/operator"
)

// usual are the times of Kubernetes' own controllers.
var usual = times{lease: 15 * time.Second, renew: 10 * time.Second, retry: 2 * time.Second}

// lease is a Lease without an API server: what replicas read and write of it.
type lease struct {
	mu      sync.Mutex
	record  *resourcelock.LeaderElectionRecord
	version int
}

// lock is one replica's way to the lease.
type lock struct {
	*lease
	identity string
	// seen is the version that it read or wrote last.
	seen int

	mu sync.Mutex
	// hangs has every request wait until its context ends.
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

// candidacy is a replica that takes part in an election.
type candidacy struct {
	lock  *lock
	begun time.Time
	// stop tells it to end.
	stop context.CancelFunc

	mu sync.Mutex
	// leads is when it began to lead, led when what it led was told to end: since begun, -1 before.
	leads, led time.Duration
	ended      bool
	err        error
}

// candidate starts a replica. What it leads goes on for the drain after it was told to end.
func candidate(t *testing.T, on *lease, identity string, drain time.Duration) *candidacy {
	t.Helper()
	r := &candidacy{lock: &lock{lease: on, identity: identity}, begun: time.Now(), leads: -1, led: -1}
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

func (r *candidacy) note(at *time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*at = time.Since(r.begun)
}

// state is a copy of what is known of the replica.
func (r *candidacy) state() (leads, led time.Duration, ended bool, err error) {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leads, r.led, r.ended, r.err
}

func TestLeaderGivesTheLeaseBackAfterItsLastPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		shared := &lease{}
		one := candidate(t, shared, "one", 3*time.Second)
		leads, _, _, _ := one.state()
		g.Expect(leads).To(BeZero(), "nobody else was there")
		two := candidate(t, shared, "two", 0)
		pause(time.Minute)
		leads, _, _, _ = two.state()
		g.Expect(leads).To(BeNumerically("<", 0), "the lease is renewed")

		one.stop()
		pause(3*time.Second - 1)
		_, led, ended, _ := one.state()
		g.Expect(led).To(BeNumerically("<", 0))
		g.Expect(ended).To(BeFalse(), "passes are under way")
		leads, _, _, _ = two.state()
		g.Expect(leads).To(BeNumerically("<", 0))
		pause(1)
		_, _, ended, err := one.state()
		g.Expect(ended).To(BeTrue())
		g.Expect(err).NotTo(HaveOccurred())

		pause(4 * time.Second)
		leads, _, _, _ = two.state()
		g.Expect(leads).To(BeNumerically(">=", time.Minute+3*time.Second), "not before the other had ended")
	})
}

func TestCandidateLeavesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		shared := &lease{}
		candidate(t, shared, "one", 0)
		two := candidate(t, shared, "two", 0)
		two.stop()
		leads, _, ended, err := two.state()
		g.Expect(ended).To(BeTrue())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(leads).To(BeNumerically("<", 0))
		g.Expect(shared.record.HolderIdentity).To(Equal("one"), "what it never had it does not give back")
	})
}

func TestLostLeaseIsAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		shared := &lease{}
		one := candidate(t, shared, "one", 0)
		pause(time.Minute)
		shared.mu.Lock()
		shared.record.HolderIdentity = "somebody"
		shared.version++
		shared.mu.Unlock()
		pause(usual.renew + 3*time.Second)
		_, led, ended, err := one.state()
		g.Expect(led).To(BeNumerically(">", time.Minute))
		g.Expect(ended).To(BeTrue())
		g.Expect(err).To(MatchError(errLeaseLost))
		g.Expect(shared.record.HolderIdentity).To(Equal("somebody"))
	})
}

// A leader that does not reach the API server any more ends what it leads before another may lead.
func TestLeaderWithoutConnectionEndsBeforeTheLeaseRunsOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		shared := &lease{}
		one, two := candidate(t, shared, "one", 0), candidate(t, shared, "two", 0)
		pause(time.Minute)
		one.lock.hang()
		pause(time.Minute)
		_, led, ended, err := one.state()
		leads, _, _, _ := two.state()
		g.Expect(ended).To(BeTrue())
		g.Expect(err).To(MatchError(errLeaseLost))
		g.Expect(leads).To(BeNumerically(">", time.Minute), "the other has taken over")
		g.Expect(led).To(BeNumerically("<", leads), "one at a time")
	})
}

// The reason why lead releases the lease itself: with client-go's own ReleaseOnCancel, what is led goes on for
// as long as the vain release takes.
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
		two := candidate(t, shared, "two", 0)
		own.hang()
		pause(time.Minute)
		leads, _, _, _ := two.state()
		g.Expect(leads).To(BeNumerically(">", 0))
		g.Expect(<-led).To(BeNumerically(">", leads), "two at a time")
	})
}

func TestLeaseNeedsANamespace(t *testing.T) {
	t.Parallel()
	_, err := newElection(nil, "one", operator.Options{}, nil)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("--leader-election-namespace must be given")))
}

func TestTimesThatCannotWork(t *testing.T) {
	t.Parallel()
	e := &election{
		lock:     &lock{lease: &lease{}, identity: "one"},
		times:    times{lease: time.Second, renew: usual.renew, retry: usual.retry},
		watchdog: leaderelection.NewLeaderHealthzAdaptor(0),
	}
	err := e.lead(t.Context(), func(context.Context, context.Context) { t.Error("it leads") })
	NewWithT(t).Expect(errors.Unwrap(err)).To(MatchError(ContainSubstring("leaseDuration must be greater than renewDeadline")))
}
