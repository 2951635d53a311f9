package managed

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
)

// start runs the manager until ctx ends, and also ends where mgr.Start does not: before the caches are full, for instance
// while the API server does not respond. runnableGroup.Start in pkg/manager/runnable_group.go of controller-runtime v0.25.2
// waits for the caches nevertheless, in a busy loop
// (https://github.com/kubernetes-sigs/controller-runtime/pull/3440). So the manager is stopped only once it has started. Before
// that it has begun nothing that the end of the process could interrupt.
func start(ctx context.Context, mgr ctrl.Manager) error {
	running := make(chan struct{})
	if err := mgr.Add(startSignal(running)); err != nil {
		return fmt.Errorf("starting the manager: %w", err)
	}
	mgrCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() {
		defer stop()
		ended <- mgr.Start(mgrCtx)
	}()
	select {
	case <-running:
	case err := <-ended:
		return err
	case <-ctx.Done():
		go func() {
			<-running
			stop()
		}()
		return nil
	}
	context.AfterFunc(ctx, stop)
	return <-ended
}

// startSignal is closed when the manager has started: as a Runnable of the manager, it is started once the caches are full.
type startSignal chan struct{}

// Start implements manager.Runnable.
func (s startSignal) Start(context.Context) error { close(s); return nil }

// NeedLeaderElection returns false, because the signal is also for a replica that is not the leader.
func (startSignal) NeedLeaderElection() bool { return false }
