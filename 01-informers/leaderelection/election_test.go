package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// usual are the times of Kubernetes' own components, with a client that gives a request 2 seconds.
var usual = times{lease: 15 * time.Second, renew: 10 * time.Second, retry: 2 * time.Second, request: 2 * time.Second}

// aWhile ends between two renewals, which are at even seconds.
const aWhile = 61 * time.Second

// slack is the longest between two looks of a candidate: wait.Jitter adds up to JitterFactor times the retry to it.
func (t times) slack() time.Duration {
	return t.retry + time.Duration(leaderelection.JitterFactor*float64(t.retry))
}

func TestTheFirstCandidateLeadsAtOnceAndTheOtherWaits(t *testing.T) {
	inBubble(t, func(g Gomega, s *server) {
		a := s.stand("a", usual, true)
		synctest.Wait()
		b := s.stand("b", usual, true)
		time.Sleep(time.Hour)
		g.Expect(a.leading).To(BeClosed())
		g.Expect(b.leading).NotTo(BeClosed())
		g.Expect(b.elector.GetLeader()).To(Equal("a"))
		g.Expect(s.now().LeaderTransitions).To(BeZero())
	})
}

func TestAReleasedLeaseIsTakenAtTheNextLook(t *testing.T) {
	inBubble(t, func(g Gomega, s *server) {
		a := s.stand("a", usual, true)
		synctest.Wait()
		b := s.stand("b", usual, true)
		time.Sleep(aWhile)
		begin := time.Now()
		a.end()
		<-b.leading
		g.Expect(time.Since(begin)).To(BeNumerically("<=", usual.slack()))
		g.Expect(a.lock.inOrder.Load()).To(BeTrue())
		g.Expect(s.now().LeaderTransitions).To(Equal(1))
	})
}

func TestALeaseThatWasNotReleasedIsWaitedOut(t *testing.T) {
	inBubble(t, func(g Gomega, s *server) {
		a := s.stand("a", usual, false)
		synctest.Wait()
		b := s.stand("b", usual, false)
		time.Sleep(aWhile)
		last := s.now().RenewTime.Time
		a.end()
		g.Expect(s.now().HolderIdentity).To(Equal("a"))
		<-b.leading
		g.Expect(time.Since(last)).To(BeNumerically(">=", usual.lease))
		g.Expect(time.Since(last)).To(BeNumerically("<=", usual.lease+2*usual.slack()))
	})
}

// One context for the work and the election, as most examples have it: the Lease is released while the work
// is still under way, as nothing waits for OnStartedLeading to return.
func TestWithOneContextTheLeaseIsReleasedBeforeTheWorkHasEnded(t *testing.T) {
	inBubble(t, func(g Gomega, s *server) {
		pass, leading, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock:          &memoryLock{server: s, identity: "a"},
			LeaseDuration: usual.lease, RenewDeadline: usual.renew, RetryPeriod: usual.retry, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) {
					close(leading)
					<-pass // a pass that is under way ends when it has ended
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
		close(pass)
		<-ended
	})
}

func TestTheWorkIsCancelledBeforeAnotherLeads(t *testing.T) {
	inBubble(t, func(g Gomega, s *server) {
		a := s.stand("a", usual, true)
		synctest.Wait()
		b := s.stand("b", usual, true)
		time.Sleep(aWhile)
		last := s.now().RenewTime.Time
		a.lock.cut()
		<-b.leading
		g.Expect(a.stopped).To(BeClosed())
		<-a.ended
		g.Expect(a.idle.Sub(last)).To(BeNumerically("<=", usual.retry+usual.renew))
		g.Expect(b.led.Sub(a.idle)).To(BeNumerically(">=", usual.lease-usual.retry-usual.renew))
	})
}

// Run has returned, and nothing in it begins again: a process that goes on as if nothing had happened does
// nothing for ever, which no probe notices. It exits.
func TestALeaderThatLostDoesNotStandAgain(t *testing.T) {
	inBubble(t, func(g Gomega, s *server) {
		a := s.stand("a", usual, true)
		<-a.leading
		a.lock.cut()
		<-a.stopped
		a.lock.broken.Store(nil)
		version := s.writes()
		time.Sleep(time.Hour)
		g.Expect(s.writes()).To(Equal(version))
		g.Expect(s.now().HolderIdentity).To(Equal("a"), "nobody else stands, and the record stays")
	})
}

// The server hangs for the leader: requests end with their context, or with the client's time-out. Without one,
// RenewDeadline passes twice, as release tries too, before the work is cancelled. A candidate that saw the last
// renewal at once, and looks at the right moment, leads LeaseDuration after it.
func TestReleaseOnCancelWorksOnWhereTheServerHangs(t *testing.T) {
	for _, row := range []struct {
		name     string
		request  time.Duration
		worksFor time.Duration
	}{
		{"no time-out", time.Hour, 22 * time.Second},
		{"the time-out of NewFromKubeconfig", usual.renew / 2, 17 * time.Second},
		{"a time-out that times.check accepts", usual.request, 14 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(g Gomega, s *server) {
				a := s.stand("a", usual, true)
				time.Sleep(aWhile)
				synctest.Wait()
				last := s.now().RenewTime.Time
				a.lock.breakWith(func(ctx context.Context) error {
					ctx, cancel := context.WithTimeout(ctx, row.request)
					defer cancel()
					<-ctx.Done()
					return ctx.Err()
				})
				<-a.ended
				g.Expect(a.idle.Sub(last)).To(Equal(row.worksFor))
				checked := usual
				checked.request = row.request
				g.Expect(checked.check() != nil).To(Equal(a.idle.Sub(last) >= usual.lease), "check refuses what may overlap")
			})
		})
	}
}

// Another one has the Lease, as after a pause, or because somebody edited it. The old leader sees it at the
// next renewal, and says so when it is asked; but it goes on trying for RenewDeadline, and its work with it.
func TestADeposedLeaderWorksOnForRenewDeadline(t *testing.T) {
	inBubble(t, func(g Gomega, s *server) {
		a := s.stand("a", usual, true)
		time.Sleep(aWhile)
		begin := time.Now()
		usurper := &memoryLock{server: s, identity: "usurper"}
		record, _, err := usurper.Get(s.Context())
		g.Expect(err).NotTo(HaveOccurred())
		record.HolderIdentity = "usurper"
		g.Expect(usurper.Update(s.Context(), *record)).To(Succeed())

		time.Sleep(usual.retry + time.Second)
		g.Expect(a.elector.IsLeader()).To(BeFalse())
		g.Expect(a.working.Load()).To(BeTrue())
		<-a.ended
		g.Expect(a.idle.Sub(begin)).To(BeNumerically(">=", usual.renew))
		g.Expect(s.now().HolderIdentity).To(Equal("usurper"), "what is not ours is not released")
	})
}

// LeaseDuration is written in whole seconds, and read from there. NewLeaderElector compares what it was given.
func TestALeaseDurationIsRoundedDownToSeconds(t *testing.T) {
	inBubble(t, func(g Gomega, s *server) {
		uneven := times{lease: 1900 * time.Millisecond, renew: 1500 * time.Millisecond, retry: 100 * time.Millisecond}
		g.Expect(uneven.check()).To(MatchError(ContainSubstring("whole seconds")))
		a := s.stand("a", uneven, false)
		synctest.Wait()
		b := s.stand("b", uneven, false)
		time.Sleep(10 * time.Second)
		g.Expect(s.now().LeaseDurationSeconds).To(Equal(1))
		a.lock.cut()
		<-b.leading
		g.Expect(a.working.Load()).To(BeTrue(), "two lead")
	})
}

// A candidate does not compare the times in the Lease with its own clock. It watches whether they change.
func TestClocksAreNotCompared(t *testing.T) {
	for name, skew := range map[string]time.Duration{"an hour behind": -time.Hour, "an hour ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(g Gomega, s *server) {
				s.skew["a"] = skew
				a := s.stand("a", usual, false)
				synctest.Wait()
				b := s.stand("b", usual, false)
				time.Sleep(time.Hour)
				g.Expect(b.leading).NotTo(BeClosed())
				a.lock.cut()
				begin := time.Now()
				<-b.leading
				g.Expect(time.Since(begin)).To(BeNumerically("<=", usual.lease+2*usual.slack()))
			})
		})
	}
}

func TestOnStoppedLeadingIsCalledWithoutHavingLed(t *testing.T) {
	inBubble(t, func(g Gomega, s *server) {
		a := s.stand("a", usual, true)
		<-a.leading
		b := s.stand("b", usual, true)
		synctest.Wait()
		b.end()
		g.Expect(b.stopped).To(BeClosed())
		g.Expect(b.leading).NotTo(BeClosed())
		g.Expect(s.now().HolderIdentity).To(Equal("a"))
	})
}

// Two with one identity: both take the record for their own.
func TestTwoWithOneIdentityBothLead(t *testing.T) {
	inBubble(t, func(g Gomega, s *server) {
		a, again := s.stand("same", usual, false), s.stand("same", usual, false)
		time.Sleep(aWhile)
		g.Expect(a.working.Load()).To(BeTrue())
		g.Expect(again.working.Load()).To(BeTrue())
	})
}

// For a process that did not exit: its health check fails, and the kubelet starts the container anew. Here the
// leader is stuck in a request that does not end with its context.
func TestTheHealthCheckFailsWhereALeaderOutlivesItsLease(t *testing.T) {
	inBubble(t, func(g Gomega, s *server) {
		a := s.stand("a", usual, true)
		<-a.leading
		health := leaderelection.NewLeaderHealthzAdaptor(20 * time.Second)
		health.SetLeaderElection(a.elector)
		g.Expect(health.Check(nil)).To(Succeed())
		stuck := make(chan struct{})
		a.lock.breakWith(func(context.Context) error { <-stuck; return errCut })
		time.Sleep(usual.lease + 20*time.Second)
		g.Expect(health.Check(nil)).To(Succeed())
		time.Sleep(usual.retry + time.Second)
		g.Expect(health.Check(nil)).To(MatchError(ContainSubstring("failed election to renew leadership")))
		close(stuck)
	})
}

func TestTimes(t *testing.T) {
	for _, row := range []struct {
		name              string
		times             times
		ours, leaderElect string
	}{
		{"the usual ones", usual, "", ""},
		{"those of this lesson", brief, "", ""},
		{"no time-out for requests but that of NewFromKubeconfig", times{usual.lease, usual.renew, usual.retry, usual.renew / 2}, "may work for 17s", ""},
		{"renew as long as lease", times{15 * time.Second, 15 * time.Second, time.Second, time.Second}, "may work for 17s", "leaseDuration must be greater than renewDeadline"},
		{"retry as long as renew", times{15 * time.Second, 2 * time.Second, 2 * time.Second, time.Second}, "", "renewDeadline must be greater than retryPeriod*JitterFactor"},
		{"no whole seconds", times{2500 * time.Millisecond, time.Second, 100 * time.Millisecond, time.Second}, "whole seconds", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := NewWithT(t)
			expect(g, row.times.check(), row.ours)
			_, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
				Lock:          &resourcelock.LeaseLock{LockConfig: resourcelock.ResourceLockConfig{Identity: "a"}},
				LeaseDuration: row.times.lease, RenewDeadline: row.times.renew, RetryPeriod: row.times.retry,
				Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
			})
			expect(g, err, row.leaderElect)
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
