package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
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
		// In a bubble, time advances only while every goroutine waits.
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				client := fake.NewClientset()
				lease, err := resourcelock.New(resourcelock.LeasesResourceLock, metav1.NamespaceDefault, leaseName,
					client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: "a"})
				g.Expect(err).NotTo(HaveOccurred())
				a := start(t.Context(), &lock{Interface: lease}, usual)
				time.Sleep(61 * time.Second) // many renewals; they are at even seconds
				held, err := client.CoordinationV1().Leases(metav1.NamespaceDefault).Get(t.Context(), leaseName, metav1.GetOptions{})
				g.Expect(err).NotTo(HaveOccurred())
				last := held.Spec.RenewTime.Time
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
				<-a.stopped
				g.Expect(a.workEnded.Sub(last)).To(Equal(row.worksFor))
				checked := usual
				checked.request = row.request
				g.Expect(checked.check() != nil).To(Equal(row.worksFor >= usual.lease), "check rejects durations with which two can lead")
			})
		})
	}
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
