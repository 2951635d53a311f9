package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"
)

// times are the durations of an election.
type times struct {
	// lease is how long the others wait after the last renewal that they saw. It reaches the Lease in whole
	// seconds, rounded down, and it is from there that all candidates read it.
	lease time.Duration
	// renew is how long a leader tries to renew before it gives up.
	renew time.Duration
	// retry is the pause between two attempts. Candidates wait up to 2.2 times as long: JitterFactor is what
	// is added at the most, in parts of the pause.
	retry time.Duration
	// request is the time-out of one request for the Lease.
	request time.Duration
}

// check refuses times under which two could lead though all clocks run alike. NewLeaderElector checks less:
// neither the whole seconds, nor that there is a pause of retry before a leader begins to fail, nor that with
// ReleaseOnCancel a leader that gave up still tries to release, before it cancels the work: that takes one
// more request, of up to RenewDeadline where the client has no time-out. What is left between the two
// sides is the margin for clocks that run at different speeds, and for the work to stop.
func (t times) check() error {
	if t.lease%time.Second != 0 {
		return fmt.Errorf("a lease of %v would be rounded down to %v: use whole seconds", t.lease, t.lease.Truncate(time.Second))
	}
	if longest := t.retry + t.renew + t.request; longest >= t.lease {
		return fmt.Errorf("a leader may work for %v after its last renewal (retry %v + renew %v + request %v), and the others wait for %v only",
			longest, t.retry, t.renew, t.request, t.lease)
	}
	return nil
}

// candidate stands for a Lease, and works while it holds it.
type candidate struct {
	name    string
	elector *leaderelection.LeaderElector
	lock    *lock

	// leading is closed when the candidate leads, stopped when OnStoppedLeading is called, ended when the
	// work has ended.
	leading, stopped, ended chan struct{}
	// led and idle are when the work began and ended.
	led, idle time.Time

	working  atomic.Bool
	stopWork context.CancelFunc
	resign   context.CancelFunc
}

// stand starts a candidate. It stops when ctx ends, or by end, which is the better way.
func stand(ctx context.Context, lock *lock, times times, release bool) (*candidate, error) {
	// What client-go logs about the election goes nowhere: the lesson says it itself. An operator leaves the
	// logger alone.
	ctx = klog.NewContext(ctx, klog.Logger{})
	working, stopWork := context.WithCancel(ctx)
	ctx, resign := context.WithCancel(ctx)
	c := &candidate{
		name: lock.Identity(), lock: lock, stopWork: stopWork, resign: resign,
		leading: make(chan struct{}), stopped: make(chan struct{}), ended: make(chan struct{}),
	}
	lock.onRelease = func() bool { return !c.working.Load() }
	var err error
	c.elector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: leaseName, Lock: lock,
		LeaseDuration: times.lease, RenewDeadline: times.renew, RetryPeriod: times.retry,
		ReleaseOnCancel: release,
		Callbacks: leaderelection.LeaderCallbacks{
			// In a goroutine of its own: Run does not wait for it, neither to renew nor to return.
			OnStartedLeading: func(lease context.Context) { c.work(lease, working) },
			// Also called where the candidate never led.
			OnStoppedLeading: func() { close(c.stopped) },
		},
	})
	if err != nil {
		stopWork()
		resign()
		return nil, err
	}
	go c.elector.Run(ctx)
	return c, nil
}

// work stands for an operator's controllers: it goes on until one of the two says stop, the elector because
// the lease is lost, or the program because it ends.
func (c *candidate) work(lease, program context.Context) {
	c.led = time.Now()
	c.working.Store(true)
	close(c.leading)
	select {
	case <-lease.Done():
	case <-program.Done():
	}
	c.idle = time.Now()
	c.working.Store(false)
	close(c.ended)
}

// end is how a leader leaves so that the next may begin at once: first the work, all of it, and only then the
// lease. The other way round, with one context for both, the lease would be free while passes are under way:
// ReleaseOnCancel says as much in its comment.
func (c *candidate) end() {
	c.stopWork()
	select {
	case <-c.leading:
		<-c.ended
	default: // it never led
	}
	c.resign()
	<-c.stopped
}
