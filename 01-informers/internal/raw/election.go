package raw

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"example.com/workbook/01-informers/internal/foo"
	"example.com/workbook/01-informers/internal/operator"
)

// namespaceFile holds the namespace of the pod that a process runs in.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// releaseTimeout is the longest that giving the lease back may take.
const releaseTimeout = 2 * time.Second

var errLeaseLost = errors.New("the lease was lost: another replica may be at work")

// election has a replica work only while it holds the lease.
type election struct {
	lock     resourcelock.Interface
	times    times
	watchdog *leaderelection.HealthzAdaptor
}

// times are those of leaderelection.LeaderElectionConfig.
type times struct{ lease, renew, retry time.Duration }

func newElection(config *rest.Config, identity string, options operator.Options, watchdog *leaderelection.HealthzAdaptor) (*election, error) {
	namespace := options.LeaderElectionNamespace
	if namespace == "" {
		content, err := os.ReadFile(namespaceFile)
		if err != nil {
			return nil, errors.New("finding the namespace of the lease: outside a cluster --leader-election-namespace must be given")
		}
		namespace = strings.TrimSpace(string(content))
	}
	t := times{lease: options.LeaseDuration, renew: options.RenewDeadline, retry: options.RetryPeriod}
	// One request that hangs must not cost the lease: there is time for another.
	config = rest.CopyConfig(config)
	config.Timeout = t.renew / 2
	client, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the lease: %w", err)
	}
	return &election{times: t, watchdog: watchdog, lock: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: foo.LeaseName},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}}, nil
}

// lead waits for the lease and calls work, whose leading ends when the lease is lost. It returns when work
// has: nil if that was because ctx ended, after it has given the lease back; else errLeaseLost, after which
// the process has to end, as it knows nothing of what others wrote since.
func (e *election) lead(ctx context.Context, work func(ctx, leading context.Context)) error {
	// The term outlives ctx: the lease is held, and renewed, until the last pass is over.
	term, resign := context.WithCancel(context.WithoutCancel(ctx))
	defer resign()
	started, ended := make(chan struct{}), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: foo.LeaseName, Lock: e.lock,
		LeaseDuration: e.times.lease, RenewDeadline: e.times.renew, RetryPeriod: e.times.retry,
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
				klog.FromContext(ctx).Info("There is a leader", "identity", identity)
			},
		},
		// Not ReleaseOnCancel: with it a leader that cannot renew the lease tries to release it, for as long
		// as RenewDeadline once more, before it ends what is led (renew in leaderelection.go calls release,
		// and Run cancels the context of OnStartedLeading after renew). By then, another may be leading.
	})
	if err != nil {
		return fmt.Errorf("electing a leader: %w", err)
	}
	e.watchdog.SetLeaderElection(elector)

	// A candidate leaves at once.
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
			klog.FromContext(ctx).Error(err, "The next leader has to wait until the lease runs out")
		}
	}
	return nil
}

// release gives the lease back, so that the next leader need not wait for it to run out.
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
	// As LeaderElector.tryRelease does it: no holder, and nearly no time to wait for.
	record.HolderIdentity = ""
	record.LeaseDurationSeconds = 1
	// The lease that was read goes along, with its resourceVersion: if it changed since, nothing happens.
	if err := e.lock.Update(ctx, *record); err != nil {
		return fmt.Errorf("releasing the lease: %w", err)
	}
	return nil
}
