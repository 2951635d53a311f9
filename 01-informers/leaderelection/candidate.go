package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"

	"example.com/workbook/01-informers/internal/lesson"
)

// durations are those of an election.
type durations struct {
	// lease is how long the other candidates wait after the last renewal that they have read. The Lease
	// contains it in whole seconds, rounded down, and all candidates read it from there.
	lease time.Duration
	// renew is how long a leader tries to renew before it stops leading.
	renew time.Duration
	// retry is the pause between two attempts. Candidates wait up to 2.2 times as long, because JitterFactor is
	// the part of the pause that is added at most.
	retry time.Duration
	// request is the timeout of one request for the Lease.
	request time.Duration
}

// check returns an error for durations with which two candidates could lead at the same time even if all clocks
// run at the same speed. NewLeaderElector checks less. It does not check for whole seconds, and it does not
// include the pause of retry before a leader notices that it cannot renew. It also leaves out the two requests that a
// leader with ReleaseOnCancel sends to release the Lease before it cancels the work: they take up to RenewDeadline
// together, or less if the client has a timeout for each. The difference between the two sides is the margin for
// clocks of different speed, and for the work to stop.
func (d durations) check() error {
	if d.lease%time.Second != 0 {
		return fmt.Errorf("a lease of %v would be rounded down to %v: use whole seconds", d.lease, d.lease.Truncate(time.Second))
	}
	release := min(d.renew, 2*d.request)
	if longest := d.retry + d.renew + release; longest >= d.lease {
		return fmt.Errorf("a leader may work for %v after its last renewal (retry %v + renew %v + release %v), and the others wait for %v only",
			longest, d.retry, d.renew, release, d.lease)
	}
	return nil
}

// candidate takes part in the election, and works while it holds the Lease.
type candidate struct {
	name    string
	elector *leaderelection.LeaderElector
	lock    *lock

	// leading is closed when the candidate leads, stopped when OnStoppedLeading is called, ended when the work
	// has ended.
	leading, stopped, ended chan struct{}
	// workBegan and workEnded are valid when leading and ended are closed.
	workBegan, workEnded time.Time

	working  atomic.Bool
	stopWork context.CancelFunc
	resign   context.CancelFunc
}

// start starts a candidate. It stops when ctx is cancelled, or by stop, which releases the Lease in order.
func start(ctx context.Context, lock *lock, durations durations) *candidate {
	// client-go logs the election. The lesson prints it itself, and so discards the log. An operator keeps the
	// logger.
	ctx = klog.NewContext(ctx, klog.Logger{})
	working, stopWork := context.WithCancel(ctx)
	ctx, resign := context.WithCancel(ctx)
	c := &candidate{
		name: lock.Identity(), lock: lock, stopWork: stopWork, resign: resign,
		leading: make(chan struct{}), stopped: make(chan struct{}), ended: make(chan struct{}),
	}
	lock.workEnded = func() bool { return !c.working.Load() }
	c.elector = lesson.Must(leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: leaseName, Lock: lock,
		LeaseDuration: durations.lease, RenewDeadline: durations.renew, RetryPeriod: durations.retry,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			// Runs in a goroutine. Run does not wait for it, neither to renew nor to return.
			OnStartedLeading: func(lease context.Context) { c.work(lease, working) },
			// Is called also if the candidate has never led.
			OnStoppedLeading: func() { close(c.stopped) },
		},
	}))
	go c.elector.Run(ctx)
	return c
}

// work simulates the controllers of an operator. It ends when the elector cancels lease, because the Lease is
// lost, or when the program cancels its own context.
func (c *candidate) work(lease, program context.Context) {
	c.workBegan = time.Now()
	c.working.Store(true)
	close(c.leading)
	select {
	case <-lease.Done():
	case <-program.Done():
	}
	c.workEnded = time.Now()
	c.working.Store(false)
	close(c.ended)
}

// stop stops a candidate so that the next one can lead at once: first all the work, and only then the Lease. With
// one context for both, the Lease would be released while reconciliations are running, as the comment of
// ReleaseOnCancel says.
func (c *candidate) stop() {
	c.stopWork()
	select {
	case <-c.leading:
		<-c.ended
	default: // It has never led.
	}
	c.resign()
	<-c.stopped
}

func (c *candidate) awaitLeading(ctx context.Context) { await(ctx, c.name+" leads", c.leading) }

// await waits until the channel is closed.
func await(ctx context.Context, what string, done <-chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, lesson.Patience)
	defer cancel()
	select {
	case <-done:
	case <-ctx.Done():
		lesson.Check(fmt.Errorf("waiting until %s: %w", what, ctx.Err()))
	}
}
