package main

import (
	"context"
	"errors"
	"sync/atomic"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"example.com/workbook/01-informers/internal/lesson"
)

// errCut is the error of every request after cut.
var errCut = errors.New("the connection was cut")

// lock is a Lease lock whose requests can be made to fail.
type lock struct {
	resourcelock.Interface
	// fail, if it is set, runs instead of every request, and returns its error.
	fail atomic.Pointer[func(context.Context) error]
	// workEnded reports whether the work has ended.
	workEnded func() bool
	// inOrder is true after the Lease was released when the work had ended.
	inOrder atomic.Bool
}

// newLock returns a lock with a client of its own. The identity must be unique among all candidates over time,
// because two candidates with one identity both lead. A hostname is not unique: the next Pod of a StatefulSet and a
// restarted container have the same. Add a UUID.
//
// The timeout of the client bounds each request. Without it, a renewal without a response would take the time of
// the next attempt, and the requests that release the Lease would delay the end of the work.
// resourcelock.NewFromKubeconfig sets half of RenewDeadline, and at least a second. With 15 s, 10 s and 2 s that
// allows work for up to 2 + 10 + 5 + 5 = 22 s after the last renewal, if ReleaseOnCancel is set and the server
// responds late to the first request of the release, and not to the second.
func newLock(config *rest.Config, namespace, identity string, durations durations) *lock {
	config = rest.CopyConfig(config)
	config.Timeout = durations.request
	client := lesson.Must(kubernetes.NewForConfig(rest.AddUserAgent(config, "leader-election")))
	return &lock{Interface: lesson.Must(resourcelock.New(resourcelock.LeasesResourceLock, namespace, leaseName,
		client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: identity}))}
}

// cut makes every later request fail.
func (l *lock) cut() { l.failWith(func(context.Context) error { return errCut }) }

func (l *lock) failWith(fail func(context.Context) error) { l.fail.Store(&fail) }

func (l *lock) check(ctx context.Context) error {
	if fail := l.fail.Load(); fail != nil {
		return (*fail)(ctx)
	}
	return nil
}

func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := l.check(ctx); err != nil {
		return nil, nil, err
	}
	return l.Interface.Get(ctx)
}

func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if err := l.check(ctx); err != nil {
		return err
	}
	return l.Interface.Create(ctx, record)
}

// Update acquires, renews or releases the Lease. The server rejects it if the Lease has changed since it was read,
// so that only one of two candidates acquires it.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if err := l.check(ctx); err != nil {
		return err
	}
	if record.HolderIdentity == "" && l.workEnded != nil {
		l.inOrder.Store(l.workEnded())
	}
	return l.Interface.Update(ctx, record)
}
