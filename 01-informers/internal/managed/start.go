package managed

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
)

// start runs the manager until ctx ends, and also ends where mgr.Start does not: before the caches are full, for instance
// while the API server does not respond. runnableGroup.Start in pkg/manager/runnable_group.go of controller-runtime v0.25.2
// waits for the caches all the same, in a loop that takes a whole processor
// (https://github.com/kubernetes-sigs/controller-runtime/pull/3440). So the manager is told to end only once it runs. Until
// then it has begun nothing that the end of the process could interrupt.
func start(ctx context.Context, mgr ctrl.Manager) error {
	running := make(chan struct{})
	if err := mgr.Add(announcement(running)); err != nil {
		return fmt.Errorf("starting the manager: %w", err)
	}
	until, end := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() {
		defer end()
		ended <- mgr.Start(until)
	}()
	select {
	case <-running:
	case err := <-ended:
		return err
	case <-ctx.Done():
		go func() {
			<-running
			end()
		}()
		return nil
	}
	context.AfterFunc(ctx, end)
	return <-ended
}

// announcement is closed when the manager runs it: the caches are full then.
type announcement chan struct{}

// Start implements manager.Runnable.
func (a announcement) Start(context.Context) error { close(a); return nil }

// NeedLeaderElection has it run also where this replica is not the leader.
func (announcement) NeedLeaderElection() bool { return false }
