package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"example.com/workbook/01-informers/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func TestProgram(t *testing.T) {
	t.Parallel()
	testserver.ExpectOutput(t, program)
}

// usual are the durations of Kubernetes components, with a request timeout of 1 second.
var usual = durations{lease: 15 * time.Second, renew: 10 * time.Second, retry: 2 * time.Second, request: time.Second}

// justInTime is how long before the timeout a late response comes.
const justInTime = time.Millisecond

// settled is the time of many renewals. It ends between two of them, which are at even seconds.
const settled = 61 * time.Second

// longestPause is the longest pause between two attempts of a candidate: wait.Jitter adds up to JitterFactor times
// retry.
func (d durations) longestPause() time.Duration {
	return d.retry + time.Duration(leaderelection.JitterFactor*float64(d.retry))
}

// leaderAndCandidate starts a, which leads, and b.
func (s *server) leaderAndCandidate(durations durations, release bool) (a, b *candidate) {
	a = s.start("a", durations, release)
	synctest.Wait()
	return a, s.start("b", durations, release)
}

// Most examples have one context for the work and the election. Then the Lease is released while the work is
// running, because the elector does not wait for OnStartedLeading to return.
func TestWithOneContextTheLeaseIsReleasedBeforeTheWorkHasEnded(t *testing.T) {
	inBubble(t, func(g Gomega, s *server) {
		reconciled, leading, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock:          &memoryLock{server: s, identity: "a"},
			LeaseDuration: usual.lease, RenewDeadline: usual.renew, RetryPeriod: usual.retry, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) {
					close(leading)
					<-reconciled // A running reconciliation does not end with the context.
					close(ended)
				},
				OnStoppedLeading: func() {},
			},
		})
		g.Expect(err).NotTo(HaveOccurred())
		ctx, cancel := context.WithCancel(s.Context())
		returned := make(chan struct{})
		go func() { elector.Run(ctx); close(returned) }()
		<-leading
		cancel()
		<-returned
		g.Expect(s.now().HolderIdentity).To(BeEmpty())
		g.Expect(ended).NotTo(BeClosed())
		close(reconciled)
		<-ended
	})
}

// Run has returned and is not called again. A process that continues does nothing, and its probes succeed. So it
// has to exit.
func TestALeaderThatLosesTheLeaseIsNotACandidateAgain(t *testing.T) {
	inBubble(t, func(g Gomega, s *server) {
		a := s.start("a", usual, true)
		<-a.leading
		a.lock.cut()
		<-a.stopped
		a.lock.fail.Store(nil)
		writes := s.writes()
		time.Sleep(time.Hour)
		g.Expect(s.writes()).To(Equal(writes))
		g.Expect(s.now().HolderIdentity).To(Equal("a"), "without another candidate the holder does not change")
	})
}

// The server does not respond to the leader: requests end with their context, or with the timeout of the client.
// Without a timeout, the work is cancelled after twice RenewDeadline, because release sends requests too: one to read
// the Lease, to which the server responds late in two of the rows, and one to write it. Another candidate can lead
// LeaseDuration after the last renewal.
func TestWithReleaseOnCancelTheWorkContinuesWhileTheServerDoesNotRespond(t *testing.T) {
	for _, row := range []struct {
		name     string
		request  time.Duration
		late     bool
		worksFor time.Duration
	}{
		{"no timeout", time.Hour, false, 22 * time.Second},
		{"the timeout of NewFromKubeconfig", usual.renew / 2, false, 17 * time.Second},
		{"the timeout of NewFromKubeconfig, and a late response", usual.renew / 2, true, 22*time.Second - justInTime},
		{"a timeout that durations.check accepts", usual.request, false, 13 * time.Second},
		{"a timeout that durations.check accepts, and a late response", usual.request, true, 14*time.Second - justInTime},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(g Gomega, s *server) {
				a := s.start("a", usual, true)
				time.Sleep(settled)
				synctest.Wait()
				last := s.now().RenewTime.Time
				late := row.late
				a.lock.failWith(func(ctx context.Context) error {
					if until, _ := ctx.Deadline(); late && until.Sub(last) > usual.retry+usual.renew { // the first request of the release
						late = false
						time.Sleep(row.request - justInTime)
						return nil
					}
					ctx, cancel := context.WithTimeout(ctx, row.request)
					defer cancel()
					<-ctx.Done()
					return ctx.Err()
				})
				<-a.ended
				g.Expect(a.workEnded.Sub(last)).To(Equal(row.worksFor))
				checked := usual
				checked.request = row.request
				g.Expect(checked.check() != nil).To(Equal(a.workEnded.Sub(last) >= usual.lease), "check rejects durations with which two can lead")
			})
		})
	}
}

// Another candidate holds the Lease, after a pause or because a user has edited it. The former leader reads that at
// the next renewal, and IsLeader returns false. But it tries to renew for RenewDeadline, and its work continues.
func TestAFormerLeaderContinuesToWorkForRenewDeadline(t *testing.T) {
	inBubble(t, func(g Gomega, s *server) {
		a := s.start("a", usual, true)
		time.Sleep(settled)
		begin := time.Now()
		other := &memoryLock{server: s, identity: "other"}
		record, _, err := other.Get(s.Context())
		g.Expect(err).NotTo(HaveOccurred())
		record.HolderIdentity = "other"
		g.Expect(other.Update(s.Context(), *record)).To(Succeed())

		time.Sleep(usual.retry + time.Second)
		g.Expect(a.elector.IsLeader()).To(BeFalse())
		g.Expect(a.working.Load()).To(BeTrue())
		<-a.ended
		g.Expect(a.workEnded.Sub(begin)).To(BeNumerically(">=", usual.renew))
		g.Expect(s.now().HolderIdentity).To(Equal("other"), "it does not release the Lease of another candidate")
	})
}

// The Lease contains LeaseDuration in whole seconds, and candidates read it from there. NewLeaderElector checks the
// original value.
func TestALeaseDurationIsRoundedDownToSeconds(t *testing.T) {
	inBubble(t, func(g Gomega, s *server) {
		uneven := durations{lease: 1900 * time.Millisecond, renew: 1500 * time.Millisecond, retry: 100 * time.Millisecond}
		g.Expect(uneven.check()).To(MatchError(ContainSubstring("whole seconds")))
		a, b := s.leaderAndCandidate(uneven, false)
		time.Sleep(10 * time.Second)
		g.Expect(s.now().LeaseDurationSeconds).To(Equal(1))
		a.lock.cut()
		<-b.leading
		g.Expect(a.working.Load()).To(BeTrue(), "two candidates lead")
	})
}

// A candidate does not compare the times in the Lease with its own clock. It only detects that they have changed.
func TestClocksAreNotCompared(t *testing.T) {
	for name, skew := range map[string]time.Duration{"an hour behind": -time.Hour, "an hour ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(g Gomega, s *server) {
				s.skew["a"] = skew
				a, b := s.leaderAndCandidate(usual, false)
				time.Sleep(time.Hour)
				g.Expect(b.leading).NotTo(BeClosed())
				a.lock.cut()
				begin := time.Now()
				<-b.leading
				g.Expect(time.Since(begin)).To(BeNumerically("<=", usual.lease+2*usual.longestPause()))
			})
		})
	}
}

func TestOnStoppedLeadingIsCalledWithoutHavingLed(t *testing.T) {
	inBubble(t, func(g Gomega, s *server) {
		a := s.start("a", usual, true)
		<-a.leading
		b := s.start("b", usual, true)
		synctest.Wait()
		b.stop()
		g.Expect(b.stopped).To(BeClosed())
		g.Expect(b.leading).NotTo(BeClosed())
		g.Expect(s.now().HolderIdentity).To(Equal("a"))
	})
}

// Each of them considers the record its own.
func TestTwoCandidatesWithOneIdentityBothLead(t *testing.T) {
	inBubble(t, func(g Gomega, s *server) {
		a, again := s.start("same", usual, false), s.start("same", usual, false)
		time.Sleep(settled)
		g.Expect(a.working.Load()).To(BeTrue())
		g.Expect(again.working.Load()).To(BeTrue())
	})
}

// The check is for a process that does not exit: the kubelet restarts its container. Here the leader sends a request
// that does not end with its context.
func TestTheHealthCheckFailsIfALeaderDoesNotStopAfterItsLeaseHasExpired(t *testing.T) {
	inBubble(t, func(g Gomega, s *server) {
		a := s.start("a", usual, true)
		<-a.leading
		health := leaderelection.NewLeaderHealthzAdaptor(20 * time.Second)
		health.SetLeaderElection(a.elector)
		g.Expect(health.Check(nil)).To(Succeed())
		blocked := make(chan struct{})
		a.lock.failWith(func(context.Context) error { <-blocked; return errCut })
		time.Sleep(usual.lease + 20*time.Second)
		g.Expect(health.Check(nil)).To(Succeed())
		time.Sleep(usual.retry + time.Second)
		g.Expect(health.Check(nil)).To(MatchError(ContainSubstring("failed election to renew leadership")))
		close(blocked)
	})
}

func TestDurations(t *testing.T) {
	for _, row := range []struct {
		name                 string
		durations            durations
		check, leaderElector string
	}{
		{"usual", usual, "", ""},
		{"this lesson", brief, "", ""},
		{"the request timeout of NewFromKubeconfig", durations{usual.lease, usual.renew, usual.retry, usual.renew / 2}, "may work for 22s", ""},
		{"renew as long as lease", durations{15 * time.Second, 15 * time.Second, time.Second, time.Second}, "may work for 18s", "leaseDuration must be greater than renewDeadline"},
		{"retry as long as renew", durations{15 * time.Second, 2 * time.Second, 2 * time.Second, time.Second}, "", "renewDeadline must be greater than retryPeriod*JitterFactor"},
		{"not in whole seconds", durations{2500 * time.Millisecond, time.Second, 100 * time.Millisecond, time.Second}, "whole seconds", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := NewWithT(t)
			expect(g, row.durations.check(), row.check)
			_, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
				Lock:          &resourcelock.LeaseLock{LockConfig: resourcelock.ResourceLockConfig{Identity: "a"}},
				LeaseDuration: row.durations.lease, RenewDeadline: row.durations.renew, RetryPeriod: row.durations.retry,
				Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
			})
			expect(g, err, row.leaderElector)
		})
	}
}

func expect(g Gomega, err error, message string) {
	if message == "" {
		g.Expect(err).NotTo(HaveOccurred())
		return
	}
	g.Expect(err).To(MatchError(ContainSubstring(message)))
}
