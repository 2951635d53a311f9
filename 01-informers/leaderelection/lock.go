package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// errCut is what a lock answers whose connection was cut.
var errCut = errors.New("the connection was cut")

// lock is a Lease lock whose connection can be cut.
type lock struct {
	resourcelock.Interface
	// broken, once set, is what every request comes to.
	broken atomic.Pointer[func(context.Context) error]
	// onRelease is asked, when the lease is released, whether the work has ended.
	onRelease func() bool
	// inOrder says that the lease was released, and that the work had ended by then.
	inOrder atomic.Bool
}

var _ resourcelock.Interface = &lock{}

// newLock makes a lock with a client of its own. The identity must be unique among all candidates that there
// ever are: two with one identity both lead. A hostname alone is not: a Pod of a StatefulSet, or a container
// that was restarted, has it again; add a UUID.
//
// The time-out of the client bounds each request: a renewal that hangs must not use up the time for the next
// attempt, nor the release after it delay the end of the work. resourcelock.NewFromKubeconfig sets half of
// RenewDeadline, and a second at the least. With 15 s, 10 s and 2 s that allows work up to 2 + 10 + 5 = 17 s
// after the last renewal, where the server hangs and ReleaseOnCancel is set.
func newLock(config *rest.Config, namespace, identity string, times times) (*lock, error) {
	config = rest.CopyConfig(config)
	config.Timeout = times.request
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(config, "leader-election"))
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	lease, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, leaseName,
		client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: identity})
	if err != nil {
		return nil, fmt.Errorf("making a lock: %w", err)
	}
	return &lock{Interface: lease}, nil
}

// cut makes every request fail from now on.
func (l *lock) cut() { l.breakWith(func(context.Context) error { return errCut }) }

func (l *lock) breakWith(answer func(context.Context) error) { l.broken.Store(&answer) }

func (l *lock) check(ctx context.Context) error {
	if broken := l.broken.Load(); broken != nil {
		return (*broken)(ctx)
	}
	return nil
}

// Get reads the record.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := l.check(ctx); err != nil {
		return nil, nil, err
	}
	return l.Interface.Get(ctx)
}

// Create writes the first record.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if err := l.check(ctx); err != nil {
		return err
	}
	return l.Interface.Create(ctx, record)
}

// Update takes, renews or releases the lease. The server refuses it where the Lease has changed since it was
// read: of two that take it at the same time, one does.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if err := l.check(ctx); err != nil {
		return err
	}
	if record.HolderIdentity == "" && l.onRelease != nil {
		l.inOrder.Store(l.onRelease())
	}
	return l.Interface.Update(ctx, record)
}
