package theloop

import (
	"context"

	"k8s.io/client-go/util/workqueue"
)

// ProcessNext takes one key from the queue, reconciles it and tells the queue what came of it. It returns false if the queue
// has been shut down.
func ProcessNext(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string],
	reconcile func(ctx context.Context, key string) error, maxRetries int,
) bool {
	key, shutdown := queue.Get()
	if shutdown {
		return false
	}
	defer queue.Done(key)
	if err := reconcile(ctx, key); err != nil && queue.NumRequeues(key) < maxRetries {
		queue.AddRateLimited(key)
	}
	return true
}
