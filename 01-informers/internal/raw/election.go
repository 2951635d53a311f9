package raw

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"example.com/workbook/01-informers/internal/foo"
	"example.com/workbook/01-informers/internal/operator"
)

// releaseTimeout bounds the release of the lease.
const releaseTimeout = 2 * time.Second

var errLeaseLost = errors.New("the lease was lost: another replica may have acquired it")

// election has a replica work only while it holds the lease.
type election struct {
	lock     resourcelock.Interface
	options  operator.Options
	watchdog *leaderelection.HealthzAdaptor
}

// lead waits for the lease and calls work, whose leading ends when the lease is lost. It returns when work has ended: nil if ctx
// has ended, after it has released the lease; else errLeaseLost, after which the process has to end, because another replica
// may have written since.
func (e *election) lead(ctx context.Context, work func(ctx, leading context.Context)) error {
	// After the end of ctx the lease is still renewed, until the last reconciliation has ended.
	term, resign := context.WithCancel(context.WithoutCancel(ctx))
	defer resign()
	started, ended := make(chan struct{}), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: foo.LeaseName, Lock: e.lock,
		LeaseDuration: e.options.LeaseDuration, RenewDeadline: e.options.RenewDeadline, RetryPeriod: e.options.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				close(started)
				isLeader.Set(1)
				work(ctx, leading)
				resign()
				close(ended)
			},
			OnStoppedLeading: func() { isLeader.Set(0) },
			OnNewLeader: func(identity string) {
				klog.FromContext(ctx).Info("New leader", "identity", identity)
			},
		},
		// Not ReleaseOnCancel: with it a leader that cannot renew the lease tries to release it, for another RenewDeadline,
		// before it cancels the context of OnStartedLeading (renew in leaderelection.go calls release, and Run cancels the
		// context after renew). By then, another replica may be the leader.
	})
	if err != nil {
		return fmt.Errorf("electing a leader: %w", err)
	}
	e.watchdog.SetLeaderElection(elector)

	// A replica that is not the leader ends at once.
	defer context.AfterFunc(ctx, func() {
		select {
		case <-started:
		default:
			resign()
		}
	})()
	elector.Run(term)
	if ctx.Err() == nil {
		<-ended
		return errLeaseLost
	}
	if elector.IsLeader() {
		<-ended
		if err := e.release(context.WithoutCancel(ctx)); err != nil {
			klog.FromContext(ctx).Error(err, "The lease was not released: the next leader has to wait until it expires")
		}
	}
	return nil
}

// release releases the lease, so that the next leader need not wait until it expires.
func (e *election) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	record, _, err := e.lock.Get(ctx)
	if err != nil {
		return fmt.Errorf("releasing the lease: %w", err)
	}
	if record.HolderIdentity != e.lock.Identity() {
		return nil
	}
	// As in LeaderElector.tryRelease: no holder, and the shortest duration.
	record.HolderIdentity = ""
	record.LeaseDurationSeconds = 1
	// The lock sends the lease that it has read, with its resourceVersion: if the lease has changed since, that is a Conflict.
	if err := e.lock.Update(ctx, *record); err != nil {
		return fmt.Errorf("releasing the lease: %w", err)
	}
	return nil
}
