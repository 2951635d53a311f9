package managed

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"

	"example.com/workbook/01-informers/internal/foo"
)

// lock is the Lease that leader election is about. The manager would make one of its own, but for two things
// that it leaves out. The election itself is the manager's.
//
// One is the identity: the manager makes one up and tells it to nobody (NewResourceLock in
// pkg/leaderelection/leader_election.go), and the operator's requests are to bear the same name.
//
// The other is an end in time. A leader that could not renew the lease for RenewDeadline goes on working until
// it has tried to release it too, as ReleaseOnCancel has it (renew in client-go's
// tools/leaderelection/leaderelection.go). Where that request hangs for half of RenewDeadline, its client's
// time-out, a leader works for 17 seconds on a lease of 15.
type lock struct {
	*resourcelock.LeaseLock
	clock clock.PassiveClock
	// term is how long after a renewal the lease may still be asked for, and renewed when that was.
	term    time.Duration
	renewed time.Time
}

func newLock(config *rest.Config, namespace, identity string, lease, renewDeadline, retryPeriod time.Duration) (*lock, error) {
	if namespace == "" {
		var err error
		if namespace, err = podNamespace(); err != nil {
			return nil, err
		}
	}
	// A request that hangs must not cost the lease: there has to be time for another.
	config = rest.CopyConfig(config)
	config.Timeout = renewDeadline / 2
	leases, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for leader election: %w", err)
	}
	return &lock{clock: clock.RealClock{}, term: lease - retryPeriod, LeaseLock: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: foo.LeaseName},
		Client:     leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}}, nil
}

// within ends a request that the lease may not outlast.
func (l *lock) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.renewed.IsZero() {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, l.term-l.clock.Since(l.renewed))
}

// Get reads the lease.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	ctx, cancel := l.within(ctx)
	defer cancel()
	return l.LeaseLock.Get(ctx)
}

// Create takes a lease that was not there.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.LeaseLock.Create)
}

// Update takes, renews or releases the lease.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.LeaseLock.Update)
}

func (l *lock) write(ctx context.Context, record resourcelock.LeaderElectionRecord,
	write func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	ctx, cancel := l.within(ctx)
	defer cancel()
	begun := l.clock.Now()
	if err := write(ctx, record); err != nil {
		return err
	}
	l.renewed = begun
	return nil
}

// podNamespace is the namespace of the pod that this runs in, as its ServiceAccount has it.
func podNamespace() (string, error) {
	text, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return "", fmt.Errorf("finding the namespace of the lease: outside a pod it must be given: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
